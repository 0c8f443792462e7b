// The pieces of work in a training step, and what each takes: the figures that `plumb layout` prints. A captured step
// is taken apart into its kernels, each is named after its layer and timed on memory of its own, with the packing of
// weights and the conversions that it makes inside timed apart, and beside it stands oneDNN with every format left to
// it. Neither options nor printing belong here.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dispatch/kernel_cache.h"
#include "graph/program.h"
#include "models/network.h"

namespace plumb::measure {

/// A piece of work in a training step. Layers with weights have their parameter's name, others that of the kernel.
struct Piece {
  std::string layer;
  const PreparedKernel* kernel;  ///< the program's
  std::string direction;         ///< "forward", "backward_input", ...
};
/// All pieces of a network's captured training step, which must outlive them, in the order in which they run.
std::vector<Piece> pieces_of(const Program& program, const models::Network& network);

struct Timing {
  double seconds = 0;           ///< of a run, packing of weights included
  double conversions = 0;       ///< seconds of these for packing and for conversions inside the kernel
  std::optional<double> error;  ///< of a Winograd kernel, against f64; not finite where its result is not
};
/// The fastest of several runs.
Timing time_of(const Piece& piece);

/// What oneDNN takes with every format left to it; measured once a layer and direction.
class OnednnBest {
 public:
  /// 0 for kernels without weights or on another device, or where oneDNN has no such work.
  double seconds(const Piece& piece);

 private:
  std::map<std::string, double> known_;  // the same in all layouts
};

}  // namespace plumb::measure
