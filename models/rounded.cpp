#include "models/rounded.h"

#include "ops/convert.h"
#include "ops/grad.h"

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

bool RoundedParameters::is_stale(size_t i) const {
  const Copy& copy = copies_[i];
  return copy.tensor && network_.trainable()[i].value->version() - copy.tensor.value->version() != copy.ahead;
}

void RoundedParameters::round(size_t i) {
  const NoGrad no_tape;
  Copy& copy = copies_[i];
  const Tensor& w = network_.trainable()[i];
  copy.tensor.copy_from(to(w, DType::kBf16));
  copy.ahead = w.value->version() - copy.tensor.value->version();
}

void RoundedParameters::refresh() {
  for (size_t i = 0; i < copies_.size(); ++i) {
    if ((copies_[i].is_used || !has_passed_) && is_stale(i)) round(i);
  }
}

Tensor RoundedParameters::of(const Tensor& parameter) {
  const auto found = number_.find(parameter.value.get());
  if (found == number_.end()) return {};
  const size_t i = found->second;
  if (is_stale(i)) {
    if (detail::ctx.recorder) return {};
    round(i);
  }
  copies_[i].is_used = true;
  return copies_[i].tensor;
}

TensorList RoundedParameters::gradients(const Tensor& loss) {
  has_passed_ = true;
  const TensorList& parameters = network_.trainable();
  TensorList wanted = parameters;
  for (const Copy& copy : copies_) {
    if (copy.is_used) wanted.push_back(copy.tensor);
  }
  TensorList found = grad(loss, wanted, {.allow_unused = true}), gradients;
  for (size_t i = 0, next = parameters.size(); i < parameters.size(); ++i) {
    const Tensor of_copy = copies_[i].is_used ? found[next++] : Tensor();
    PLUMB_CHECK(!of_copy || !found[i],
                "{}: its parameter number {} is used in bf16 and in f32 in one pass, and no single gradient is both's; "
                "train it without RoundedParameters",
                network_.name(), i);
    PLUMB_CHECK(of_copy || found[i], "{}: the loss does not depend on its parameter number {}", network_.name(), i);
    copies_[i].is_used = static_cast<bool>(of_copy);  // by this pass, whatever others did
    gradients.push_back(of_copy ? of_copy : found[i]);
  }
  return gradients;
}

TensorList RoundedParameters::used() const {
  TensorList list;
  for (const Copy& copy : copies_) list.push_back(copy.is_used ? copy.tensor : Tensor());
  return list;
}

}  // namespace plumb::models
