#include "measure/layout_pieces.h"

#include <map>
#include <string_view>

namespace plumb::measure {
namespace {

std::string direction_of(std::string_view kernel) {
  for (const std::string_view d : {"backward_input", "backward_weight", "backward", "forward"}) {
    if (kernel.find(d) != kernel.npos) return std::string(d);  // anywhere in the name: "linear_backward_weight_bias"
  }
  return "";
}

std::vector<std::string> layers_with_weights(const models::Network& network) {
  std::vector<std::string> names;
  for (const auto& p : network.parameters()) {
    if (p.tensor.rank() > 1) names.push_back(p.name.substr(0, p.name.rfind('.')));
  }
  return names;
}

// Programs show their kernels to be read, but share them as the cache does.
detail::Ref<PreparedKernel> own(const PreparedKernel* p) {
  return detail::Ref<PreparedKernel>(const_cast<PreparedKernel*>(p));
}

}  // namespace

bool has_weight(std::string_view kernel) { return kernel.starts_with("conv2d_") || kernel.starts_with("linear_"); }

// Backward visits the layers in the reverse order of forward.
std::vector<Piece> pieces_of(const Program& program, const models::Network& network) {
  const std::vector<std::string> names = layers_with_weights(network);
  std::map<std::string, size_t> met;
  std::vector<Piece> pieces;
  for (const PreparedKernel* p : program.kernels()) {
    const std::string kernel = p->kind->name, direction = direction_of(kernel);
    if (kernel == "repack") continue;  // timed with the kernel that needs the pack
    if (!has_weight(kernel)) {
      pieces.push_back({kernel, own(p), direction});
      continue;
    }
    const bool is_both = direction == "backward";  // one kernel for both gradients
    const size_t i = met[is_both ? "backward_weight" : direction]++;
    if (is_both) ++met["backward_input"];
    PLUMB_CHECK(i < names.size(), "layout: {} has more kernels with weights than layers", network.name());
    pieces.push_back({direction == "forward" ? names[i] : names[names.size() - 1 - i], own(p), direction});
  }
  return pieces;
}

}  // namespace plumb::measure
