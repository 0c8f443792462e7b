#include "models/network.h"

#include <numeric>

#include "graph/program.h"
#include "models/alexnet.h"
#include "models/init.h"
#include "models/lenet.h"
#include "models/resnet.h"
#include "models/vgg16.h"
#include "ops/fill.h"

namespace plumb::models {

Tensor ParameterMaker::add(std::vector<NamedTensor>& to, const std::string& name, Tensor t) {
  for (const auto& list : {&parameters, &buffers}) {
    for (const NamedTensor& known : *list) PLUMB_CHECK(known.name != name, "network: two tensors are named {}", name);
  }
  to.push_back({name, t});
  return t;
}

Tensor ParameterMaker::weight(const std::string& name, const Shape& shape, int64_t fan_in, int64_t fan_out) {
  Tensor t = Tensor::empty(TensorSpec(shape), MemoryClass::kParameter, detail::ctx.policy.device);
  (fill_ ? fill_ : init_weight)(t, convention_, fan_in, fan_out, seed_ + 0x9E3779B97F4A7C15ull * ++count_);
  return add(parameters, name, t.require_grad());
}

Tensor ParameterMaker::bias(const std::string& name, int64_t n, int64_t fan_in) {
  Tensor t = Tensor::empty(TensorSpec(Shape{n}), MemoryClass::kParameter, detail::ctx.policy.device);
  init_bias(t, convention_, fan_in, seed_ + 0x9E3779B97F4A7C15ull * ++count_);
  return add(parameters, name, t.require_grad());
}

Tensor ParameterMaker::constant(const std::string& name, const Shape& shape, double value) {
  const MemoryScope memory(MemoryClass::kParameter);
  return add(parameters, name, full(TensorSpec(shape), value).require_grad());
}

Tensor ParameterMaker::buffer(const std::string& name, const Shape& shape, double value) {
  const MemoryScope memory(MemoryClass::kParameter);
  return add(buffers, name, full(TensorSpec(shape), value));
}

void Network::finish(ParameterMaker&& made) {
  made_ = std::move(made);
  for (const NamedTensor& p : made_.parameters) trainable_.push_back(p.tensor);
}

Device Network::device() const { return trainable_.empty() ? Device{} : trainable_[0].device(); }

int64_t Network::parameter_count() const {
  return std::accumulate(trainable_.begin(), trainable_.end(), int64_t{0},
                         [](int64_t n, const Tensor& t) { return n + t.numel(); });
}

std::vector<LayerRow> Network::table() const {
  std::vector<LayerRow> rows;
  ForwardContext context;
  context.table = &rows;
  const NoGrad no_grad;
  const Tensor x = Tensor::empty(TensorSpec(Shape{1, input_[0], input_[1], input_[2]}), MemoryClass::kInput, device());
  capture([&] { return TensorList{forward(x, context)}; });
  return rows;
}

namespace {

template <class N, int... kDepth>
std::unique_ptr<Network> make(ParameterMaker&& maker) {
  return std::make_unique<N>(std::move(maker), kDepth...);
}

struct Known {
  const char* name;
  std::unique_ptr<Network> (*make)(ParameterMaker&&);
};
constexpr Known kNetworks[] = {{"alexnet", make<AlexNet>},     {"vgg16", make<Vgg16>},
                               {"lenet", make<LeNet>},         {"resnet20", make<ResNet, 20>},
                               {"resnet32", make<ResNet, 32>}, {"resnet44", make<ResNet, 44>},
                               {"resnet56", make<ResNet, 56>}, {"resnet50", make<ResNet50>}};

}  // namespace

std::unique_ptr<Network> make_network(std::string_view name, uint64_t seed, Convention convention) {
  const std::string_view wanted = name == "vgg" ? "vgg16" : name;
  std::string all;
  for (const Known& known : kNetworks) {
    if (known.name == wanted) return known.make(ParameterMaker(seed, convention));
    all += std::string(all.empty() ? "" : ", ") + known.name;
  }
  fail("model \"{}\" is unknown; use one of {}", name, all);
}

std::vector<std::string> network_names() {
  std::vector<std::string> names;
  for (const Known& known : kNetworks) names.emplace_back(known.name);
  return names;
}

}  // namespace plumb::models
