#include "bench/compare/plumbline/catalogue.h"

#include <nlohmann/json.hpp>

#include "ops/batch_norm.h"
#include "ops/concat.h"
#include "ops/conv2d.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/fill.h"
#include "ops/index_select.h"
#include "ops/linear.h"
#include "ops/matmul.h"
#include "ops/mse.h"
#include "ops/pad2d.h"
#include "ops/permute.h"
#include "ops/pool2d.h"
#include "ops/reduce.h"
#include "ops/slice.h"
#include "ops/softmax.h"

namespace plumb::compare {
namespace {

using Attributes = nlohmann::json;
using Call = Tensor (*)(const Tensors& t, const Attributes& a);

Size2d size(const Attributes& a) { return {a.at(0).get<int32_t>(), a.at(1).get<int32_t>()}; }

template <class T>
Sides<T> sides(const Attributes& a) {
  return {a.at(0).get<T>(), a.at(1).get<T>(), a.at(2).get<T>(), a.at(3).get<T>()};
}

Dims dims(const Attributes& a) { return Dims(a.get<std::vector<int>>()); }

Shape shape(const Attributes& a) {
  const auto extents = a.get<std::vector<int64_t>>();
  return Shape(std::span<const int64_t>(extents));
}

// The input of this name, or an empty tensor.
Tensor optional(const Tensors& t, const char* name) {
  const auto it = t.find(name);
  return it == t.end() ? Tensor() : it->second;
}

Pool2dParams window(const Attributes& a) {
  return {.kernel = size(a.at("kernel")), .stride = size(a.at("stride")), .padding = sides<int32_t>(a.at("padding"))};
}

Tensor conv2d_of(const Tensors& t, const Attributes& a) {
  return conv2d(t.at("x"), t.at("w"), optional(t, "b"), conv2d_params(a));
}

// By the statistics of the batch; the running ones are thrown away.
Tensor batch_norm_of(const Tensors& t, const Attributes& a) {
  const TensorSpec statistics(t.at("w").shape(), t.at("w").dtype());
  const BatchNormParams p{.epsilon = a.at("epsilon").get<double>(), .momentum = a.at("momentum").get<double>()};
  return batch_norm(t.at("x"), t.at("w"), t.at("b"), zeros(statistics), ones(statistics), p);
}

template <Tensor (*op)(const Tensor&)>
Tensor of_one(const Tensors& t, const Attributes&) {
  return op(t.at("x"));
}
template <Tensor (*op)(const Tensor&, const Tensor&)>
Tensor of_two(const Tensors& t, const Attributes&) {
  return op(t.at("x"), t.at("other"));
}
template <Tensor (*op)(const Tensor&, const Dims&, bool)>
Tensor reduced(const Tensors& t, const Attributes& a) {
  return op(t.at("x"), dims(a.at("dims")), false);
}
template <Tensor (*op)(const Tensor&, int)>
Tensor along(const Tensors& t, const Attributes& a) {
  return op(t.at("x"), a.at("dim").get<int>());
}

const std::map<std::string, Call>& calls() {
  static const std::map<std::string, Call> all{
      {"conv2d", conv2d_of},
      {"batch_norm", batch_norm_of},
      {"linear", [](const Tensors& t, const Attributes&) { return linear(t.at("x"), t.at("w"), optional(t, "b")); }},
      {"matmul",
       [](const Tensors& t, const Attributes& a) {
         return matmul(t.at("a"), t.at("b"), a.at("transpose_a").get<bool>(), a.at("transpose_b").get<bool>());
       }},
      {"max_pool2d", [](const Tensors& t, const Attributes& a) { return max_pool2d(t.at("x"), window(a)); }},
      {"avg_pool2d", [](const Tensors& t, const Attributes& a) { return avg_pool2d(t.at("x"), window(a)); }},
      {"pad2d",
       [](const Tensors& t, const Attributes& a) { return pad2d(t.at("x"), sides<int64_t>(a.at("padding"))); }},
      {"slice", [](const Tensors& t,
                   const Attributes& a) { return slice(t.at("x"), shape(a.at("begin")), shape(a.at("extents"))); }},
      {"concat",
       [](const Tensors& t, const Attributes& a) {
         return concat({t.at("x"), t.at("other")}, a.at("dim").get<int>());
       }},
      {"index_select",
       [](const Tensors& t, const Attributes& a) {
         return index_select(t.at("x"), a.at("dim").get<int>(), t.at("index"));
       }},
      {"permute", [](const Tensors& t, const Attributes& a) { return permute(t.at("x"), dims(a.at("dims"))); }},
      {"cross_entropy", [](const Tensors& t, const Attributes&) { return cross_entropy(t.at("x"), t.at("labels")); }},
      {"mse", of_two<mse>},
      {"relu", of_one<relu>},
      {"gelu", of_one<gelu>},
      {"gelu_tanh", of_one<gelu_tanh>},
      {"silu", of_one<silu>},
      {"softplus", of_one<softplus>},
      {"sigmoid", of_one<sigmoid>},
      {"tanh", of_one<tanh>},
      {"exp", of_one<exp>},
      {"log", of_one<log>},
      {"sqrt", of_one<sqrt>},
      {"square", of_one<square>},
      {"abs", of_one<abs>},
      {"add", of_two<add>},
      {"mul", of_two<mul>},
      {"div", of_two<div>},
      {"maximum", of_two<maximum>},
      {"sum", reduced<sum>},
      {"mean", reduced<mean>},
      {"max", reduced<max>},
      {"argmax", reduced<argmax>},
      {"softmax", along<softmax>},
      {"log_softmax", along<log_softmax>},
  };
  return all;
}

}  // namespace

Conv2dParams conv2d_params(const nlohmann::json& a) {
  return {.stride = size(a.at("stride")),
          .dilation = size(a.at("dilation")),
          .padding = sides<int32_t>(a.at("padding")),
          .groups = a.at("groups").get<int32_t>()};
}

Tensor call(const std::string& op, const Tensors& inputs, const nlohmann::json& attributes) {
  const auto it = calls().find(op);
  PLUMB_CHECK(it != calls().end(), "the op {} is unknown", op);
  return it->second(inputs, attributes);
}

}  // namespace plumb::compare
