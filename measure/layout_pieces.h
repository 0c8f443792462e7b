// Takes a captured training step apart into pieces of work and times each: the figures that `plumb layout` prints. Each
// kernel is named after its layer and timed on its own memory; packing of weights and conversions inside the kernel are
// timed separately. For comparison there is oneDNN with free choice of all formats. Options and printing belong
// elsewhere.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dispatch/kernel_cache.h"
#include "graph/program.h"
#include "models/network.h"

namespace plumb::measure {

/// A piece of work in a training step. A layer with weights has its parameter's name, any other the kernel's name.
struct Piece {
  std::string layer;
  const PreparedKernel* kernel;  ///< owned by the program
  std::string direction;         ///< "forward", "backward_input", ...
};
/// All pieces of a captured training step, in the order in which they run. The program must outlive them.
std::vector<Piece> pieces_of(const Program& program, const models::Network& network);

struct Timing {
  double seconds = 0;           ///< of a run, including the packing of weights
  double conversions = 0;       ///< the part of `seconds` for packing and for conversions inside the kernel
  std::optional<double> error;  ///< of a Winograd kernel, against f64; not finite if its result is not
};
/// The fastest of several runs.
Timing time_of(const Piece& piece);

/// oneDNN's time with free choice of all formats; measured once per layer and direction.
class OnednnBest {
 public:
  /// 0 for kernels without weights or on another device, and if oneDNN cannot do the work.
  double seconds(const Piece& piece);

 private:
  std::map<std::string, double> known_;  // the same in all layouts
};

}  // namespace plumb::measure
