#include "tests/support/tensors.h"

#include "core/random.h"
#include "core/runtime.h"
#include "kernels/cpu/nontemporal.h"
#include "ops/convert.h"

namespace plumb::test {
namespace {

// Calls visit(position in row-major logical order, position in memory). The last dimension has its own loop, since
// tests on large tensors spend most of their time here.
template <class Visit>
void for_each_element(const TensorSpec& spec, const Visit& visit) {
  const int64_t n = spec.numel();
  if (n == 0) return;
  const Strides strides = strides_of(spec);
  const int last = spec.rank() - 1;
  const int64_t row = last < 0 ? 1 : spec.shape[last], step = last < 0 ? 1 : strides[last];
  for (int64_t begin = 0; begin < n; begin += row) {
    int64_t rest = begin / row, at = 0;
    for (int d = last - 1; d >= 0; --d) {
      at += rest % spec.shape[d] * strides[d];
      rest /= spec.shape[d];
    }
    for (int64_t i = 0; i < row; ++i) visit(static_cast<size_t>(begin + i), at + i * step);
  }
}

template <class T>
double to_double(T v) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(v);
  } else {
    return static_cast<double>(static_cast<float>(v));
  }
}
template <class T>
T to_element(double v) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(v);
  } else {
    return T(static_cast<float>(v));
  }
}

}  // namespace

std::vector<double> to_doubles(const void* data, const TensorSpec& spec, Device device) {
  if (!device.is_cpu()) {
    std::vector<unsigned char> here(spec.bytes());
    detail::copy_bytes(here.data(), {}, data, device, spec.bytes());
    return to_doubles(here.data(), spec);
  }
  std::vector<double> values(static_cast<size_t>(spec.numel()));
  dispatch_dtype(spec.dtype, [&]<class T>() {
    for_each_element(spec, [&](size_t i, int64_t at) { values[i] = to_double(static_cast<const T*>(data)[at]); });
  });
  return values;
}
Tensor on_host(const Tensor& x) { return to(x.detached(), Device{}); }
std::vector<double> to_doubles(const Tensor& x) {
  const Tensor here = on_host(x);
  return to_doubles(here.value->data, here.spec());
}

Tensor from_doubles(std::span<const double> values, const TensorSpec& spec) {
  PLUMB_CHECK(static_cast<int64_t>(values.size()) == spec.numel(), "a tensor {} was given {} elements", spec,
              values.size());
  Tensor x = Tensor::empty(spec);
  dispatch_dtype(spec.dtype, [&]<class T>() {
    for_each_element(spec,
                     [&](size_t i, int64_t at) { static_cast<T*>(x.value->data)[at] = to_element<T>(values[i]); });
  });
  return to(x, detail::ctx.policy.device);
}

Tensor converted(const Tensor& x, DType dtype, Layout layout) {
  return from_doubles(to_doubles(x), TensorSpec(x.shape(), dtype, layout));
}

int64_t pieces_past_caches(int64_t bytes) { return cpu::ceil_div(cpu::nontemporal_bytes, bytes); }

Tensor random_tensor(const TensorSpec& spec, uint64_t seed, double low, double high) {
  std::vector<double> values(static_cast<size_t>(spec.numel()));
  detail::fill_uniform(values.data(), DType::kF64, spec.numel(), low, high, seed);
  return from_doubles(values, spec);
}

Tensor small_integers(const TensorSpec& spec, uint64_t seed, int limit) {
  std::vector<int32_t> values(static_cast<size_t>(spec.numel()));
  detail::fill_uniform(values.data(), DType::kI32, spec.numel(), -limit, limit, seed);
  return from_doubles(std::vector<double>(values.begin(), values.end()), spec);
}

std::vector<Tensor> leaves_of(std::span<const Tensor> inputs) {
  std::vector<Tensor> leaves;
  for (const Tensor& x : inputs) {
    if (x.requires_grad()) leaves.push_back(x);
  }
  return leaves;
}

}  // namespace plumb::test
