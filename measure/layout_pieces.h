// Takes a captured training step apart into pieces of work, each named after its layer: the rows of `plumb layout`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dispatch/kernel_cache.h"
#include "graph/program.h"
#include "models/network.h"

namespace plumb::measure {

/// A piece of work in a training step. A layer with weights has its parameter's name, any other the kernel's name.
struct Piece {
  std::string layer;
  detail::Ref<PreparedKernel> kernel;
  std::string direction;  ///< "forward", "backward_input", ...
};
/// All pieces of a captured training step, in the order in which they run.
std::vector<Piece> pieces_of(const Program& program, const models::Network& network);
/// Whether a kernel of this name belongs to a layer with weights.
bool has_weight(std::string_view kernel);

}  // namespace plumb::measure
