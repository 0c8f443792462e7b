#include "models/rounded.h"

#include "ops/convert.h"

namespace plumb::models {

RoundedParameters::RoundedParameters(const Network& network) : network_(network) {
  PLUMB_CHECK(!detail::ctx.recorder, "{}: its parameters are rounded while a step is captured; do it before",
              network.name());
  const MemoryScope memory(MemoryClass::kParameter);
  const NoGrad no_tape;
  copies_.resize(network.trainable().size());
  for (size_t i = 0; i < copies_.size(); ++i) {
    const Tensor& w = network.trainable()[i];
    if (w.dtype() != DType::kF32) continue;
    Copy& copy = copies_[i];
    copy.tensor = to(w, DType::kBf16);
    copy.tensor.require_grad();
    copy.ahead = w.value->version() - copy.tensor.value->version();
    number_[w.value.get()] = i;
  }
}

void RoundedParameters::refresh() {
  const NoGrad no_tape;
  for (size_t i = 0; i < copies_.size(); ++i) {
    Copy& copy = copies_[i];
    const Tensor& w = network_.trainable()[i];
    if (!copy.is_used || w.value->version() - copy.tensor.value->version() == copy.ahead) continue;
    copy.tensor.copy_from(to(w, DType::kBf16));
    copy.ahead = w.value->version() - copy.tensor.value->version();
  }
}

Tensor RoundedParameters::of(const Tensor& parameter) {
  const auto found = number_.find(parameter.value.get());
  if (found == number_.end()) return {};
  copies_[found->second].is_used = true;
  return copies_[found->second].tensor;
}

TensorList RoundedParameters::trainable() const {
  TensorList list;
  for (size_t i = 0; i < copies_.size(); ++i)
    list.push_back(copies_[i].is_used ? copies_[i].tensor : network_.trainable()[i]);
  return list;
}

TensorList RoundedParameters::used() const {
  TensorList list;
  for (const Copy& copy : copies_) list.push_back(copy.is_used ? copy.tensor : Tensor());
  return list;
}

}  // namespace plumb::models
