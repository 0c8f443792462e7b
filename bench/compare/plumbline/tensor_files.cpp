#include "bench/compare/plumbline/tensor_files.h"

#include <nlohmann/json.hpp>

#include "models/safetensors.h"
#include "models/weights.h"
#include "ops/convert.h"
#include "ops/fill.h"
#include "ops/random.h"

namespace plumb::compare {
namespace {

Tensor plain(const Tensor& there) {
  const Tensor x = to(there, Device());
  const Tensor row_major = x.rank() == 4 ? to(x, Layout::kNchw) : x;
  return is_floating(x.dtype()) ? to(row_major, DType::kF32) : row_major;
}

}  // namespace

Tensors read_tensors(const std::string& file) {
  Tensors tensors;
  for (models::NamedTensor& t : models::load_safetensors(file).tensors) tensors[t.name] = t.tensor;
  return tensors;
}

void write_tensors(const std::string& file, const Tensors& tensors) {
  std::vector<models::NamedTensor> list;
  for (const auto& [name, tensor] : tensors) list.push_back({name, plain(tensor)});
  models::save_safetensors(file, list);
}

void make_inputs(const nlohmann::json& request) {
  Tensors tensors;
  if (request.contains("network")) {
    const auto network =
        models::make_network(request.at("network").get<std::string>(), request.at("seed").get<uint64_t>(),
                             convention_from_string(request.at("initial").get<std::string>()));
    for (const auto* list : {&network->parameters(), &network->buffers()}) {
      for (const models::NamedTensor& t : *list) tensors[t.name] = t.tensor;
    }
  }
  uint64_t seed = request.at("seed").get<uint64_t>() * 1000;
  for (const auto& [name, t] : request.at("inputs").items()) {
    ++seed;
    const auto low = t.at("low").get<double>(), high = t.at("high").get<double>();
    if (tensors.contains(name) && low < high) continue;
    const auto extents = t.at("shape").get<std::vector<int64_t>>();
    const Shape shape{std::span<const int64_t>(extents)};
    const auto classes = t.at("classes").get<int64_t>();
    tensors[name] = classes > 0  ? uniform(TensorSpec(shape, DType::kI64), 0, static_cast<double>(classes - 1), seed)
                    : low < high ? uniform(TensorSpec(shape), low, high, seed)
                                 : full(TensorSpec(shape), low);
    if (t.value("rounded", false)) tensors[name] = to(tensors[name], DType::kBf16);
  }
  write_tensors(request.at("file"), tensors);
}

}  // namespace plumb::compare
