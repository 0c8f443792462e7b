#include <cstdlib>
#include <sstream>

#include "bench/compare/plumbline/work.h"
#include "dispatch/policy.h"

namespace plumb::compare {

Mode mode_of(const std::string& words) {
  Mode mode;
  mode.policy = detail::ctx.policy;
  mode.policy.search = Search::kMeasured;
  std::istringstream in(words);
  for (std::string word; in >> word;) {
    if (word == "vendor") {
      mode.policy.kernels = KernelSet::kVendor;
    } else if (word == "captured") {
      mode.captured = true;
    } else if (word == "charged") {
      mode.is_charged = true;
    } else if (word == "reference") {
      mode.is_f64 = true;
      mode.policy.search = Search::kHeuristic;
      mode.policy.algorithm = algorithm_id(word);
    } else if (word == "heuristic" || word == "deterministic") {
      mode.policy.search = word == "heuristic" ? Search::kHeuristic : Search::kDeterministic;
    } else if (word.starts_with("only:")) {
      mode.algorithm = word.substr(5);
      mode.policy.search = Search::kHeuristic;
      mode.policy.algorithm = algorithm_id(mode.algorithm);
    } else if (word == "nchw" || word == "nhwc" || word == "chwn" || word == "blocked" || word == "auto") {
      mode.layout = word;
    } else if (word == "fused" || word == "per_tensor" || word == "chain") {
      mode.update = word;
    } else if (word == "augment" || word == "step" || word == "after" || word == "overlapped") {
      mode.input = word;
    } else if (word.starts_with("reads=")) {
      mode.reads = std::atoi(word.c_str() + 6);
    } else if (word == "pytorch" || word == "keras" || word == "tensorflow1") {
      mode.convention = convention_from_string(word);
    } else {
      PLUMB_CHECK(word == "best",
                  "the mode {} is unknown; use best, vendor, reference, captured, charged, heuristic, deterministic, "
                  "only:ALGORITHM, fused, per_tensor, chain, reads=N, pytorch, keras, tensorflow1 or a layout",
                  word);
    }
  }
  return mode;
}

}  // namespace plumb::compare
