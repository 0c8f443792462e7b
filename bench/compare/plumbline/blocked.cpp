#include <functional>
#include <nlohmann/json.hpp>

#include "bench/compare/plumbline/work.h"
#include "core/context.h"
#include "measure/onednn/raw.h"
#include "ops/conv2d.h"
#include "ops/convert.h"

namespace plumb::compare {
namespace {

using measure::Direction;
using measure::RawExchange;
using nlohmann::json;

// The tensors of a direction, in the order of RawExchange.
struct Pass {
  const char* inputs[2];
  const char* result;
};
const Pass& pass_of(Direction d) {
  static constexpr Pass kPasses[] = {{{"x", "w"}, "y"}, {{"dy", "w"}, "dx"}, {{"dy", "x"}, "dw"}};
  return kPasses[static_cast<size_t>(d)];
}

class BlockedWork final : public Work {
 public:
  BlockedWork(const json& problem, const Tensors& tensors, const Mode& mode) : is_charged_(mode.is_charged) {
    const DType dtype = dtype_from_string(problem.at("dtype").get<std::string>());
    for (const auto& [name, t] : tensors) plain_[name] = to(t, dtype);
    const Conv2dParams params = conv2d_params(problem.at("nodes").at(0).at("attributes"));
    const TensorSpec x = plain_.at("x").spec(), w = plain_.at("w").spec();
    const TensorSpec y = conv2d_output(params, x, w);
    plain_["y"] = Tensor::empty(y), plain_["dx"] = Tensor::empty(x), plain_["dw"] = Tensor::empty(w);
    std::vector<Direction> directions{Direction::kForward};
    if (problem.at("direction") != "forward") {
      for (const std::string name : problem.at("gradients")) {
        directions.push_back(name == "x" ? Direction::kBackwardInput : Direction::kBackwardWeight);
      }
    }
    for (const Direction d : directions) add({d, x, w, y, params});
  }

  void step() override {
    for (const Step& s : steps_) {
      if (is_charged_) s.before();
      s.raw->run();
      if (is_charged_) s.after();
    }
  }

  Tensors results() override {
    Tensors named;
    for (const Step& s : steps_) {
      s.before();
      s.raw->run();
      s.after();
      named[s.pass.result] = plain_.at(s.pass.result);
    }
    return named;
  }

  json facts() const override { return {{"layout", "blocked"}, {"implementation", implementation_}}; }

 private:
  struct Step {
    std::shared_ptr<RawExchange> raw;
    Pass pass;
    std::function<void()> before, after;
  };

  void* data(const std::string& name) { return plain_.at(name).value->data; }

  void add(const measure::RawConv2d& work) {
    std::shared_ptr<RawExchange> raw = measure::raw_best(work);
    PLUMB_CHECK(raw, "conv2d: oneDNN has no kernel of its own formats for {} of {} and {}", to_string(work.direction),
                to_string(work.x), to_string(work.w));
    const Pass& pass = pass_of(work.direction);
    std::vector<std::function<void()>> conversions;
    for (size_t i = 0; i < 2; ++i) {
      if (is_shared(*raw, i, pass.inputs[i])) continue;
      const auto give = raw->give(i, data(pass.inputs[i]));
      give();
      // A filter stays packed as long as nobody writes to it, as Plumbline's other layouts have it.
      if (pass.inputs[i] != std::string("w")) conversions.push_back(give);
    }
    const auto before = [conversions] {
      for (const auto& convert : conversions) convert();
    };
    steps_.push_back({raw, pass, before, raw->take(data(pass.result))});
    implementation_ += (implementation_.empty() ? "" : "; ") + raw->implementation();
  }

  // Whether an earlier pass has the same tensor in the same format.
  bool is_shared(RawExchange& raw, size_t input, const std::string& name) {
    for (Step& s : steps_) {
      for (size_t j = 0; j < 2; ++j) {
        if (name == s.pass.inputs[j] && raw.share(input, *s.raw, j)) return true;
      }
    }
    return false;
  }

  bool is_charged_;
  Tensors plain_;
  std::vector<Step> steps_;
  std::string implementation_;
};

}  // namespace

std::unique_ptr<Work> prepare_blocked(const json& problem, const Tensors& tensors, const Mode& mode) {
  PLUMB_CHECK(detail::ctx.policy.device.is_cpu(), "the mode blocked is oneDNN's, and so for a processor");
  PLUMB_CHECK(problem.at("kind") == "op" && problem.at("op") == "conv2d" && !tensors.contains("b"),
              "the mode blocked is for convolutions without a bias, not for {}", problem.at("op").get<std::string>());
  return std::make_unique<BlockedWork>(problem, tensors, mode);
}

}  // namespace plumb::compare
