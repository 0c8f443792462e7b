#include "core/random.h"

#include <cmath>
#include <numbers>

#include "core/error.h"
#include "core/runtime.h"

namespace plumb {
namespace {

// number(i) for i in 0..count, four at a counter.
template <class Number>
void fill(void* data, DType dtype, int64_t count, uint64_t seed, Number number) {
  dispatch_dtype(dtype, [&]<class T>() {
    auto* out = static_cast<T*>(data);
    for (int64_t i = 0; i < count; i += 4) {
      const auto bits = Philox::block(seed, static_cast<uint64_t>(i / 4), 0);
      double v[4];
      number(bits, v);
      for (int64_t j = 0; j < 4 && i + j < count; ++j) {
        if constexpr (std::is_integral_v<T>) {
          out[i + j] = static_cast<T>(std::floor(v[j]));
        } else if constexpr (std::is_same_v<T, double>) {
          out[i + j] = v[j];
        } else {
          out[i + j] = T(static_cast<float>(v[j]));
        }
      }
    }
  });
}

}  // namespace

void detail::fill_uniform(void* data, DType dtype, int64_t count, double low, double high, uint64_t seed) {
  const bool whole = !is_floating(dtype);
  const double first = whole ? std::ceil(low) : low, last = whole ? std::floor(high) : high;
  PLUMB_CHECK(first <= last && std::isfinite(last - first), "uniform: there are no numbers of dtype {} from {} to {}",
              dtype, low, high);
  const double least = dtype == DType::kU8 ? 0 : -0x1p31, most = dtype == DType::kU8 ? 255 : 0x1p31 - 1;
  PLUMB_CHECK(!whole || (first >= least && last <= most),
              "uniform: {} to {} was asked for; numbers of dtype {} are drawn from within {} to {}", low, high, dtype,
              least, most);
  const double range = last - first + (whole ? 1 : 0);
  fill(data, dtype, count, seed, [&](const auto& bits, double* v) {
    for (size_t j = 0; j < 4; ++j) v[j] = first + range * static_cast<double>(Philox::unit(bits[j]));
  });
}

void detail::fill_normal(void* data, DType dtype, int64_t count, double mean, double deviation, uint64_t seed) {
  PLUMB_CHECK(is_floating(dtype) && deviation >= 0,
              "normal: dtype {} and deviation {} were asked for; use a floating dtype and a deviation of 0 or more",
              dtype, deviation);
  fill(data, dtype, count, seed, [&](const auto& bits, double* v) {
    for (size_t j = 0; j < 4; j += 2) {
      const double u = 1.0 - static_cast<double>(Philox::unit(bits[j]));  // (0, 1]
      const double angle = 2 * std::numbers::pi * static_cast<double>(Philox::unit(bits[j + 1]));
      const double radius = deviation * std::sqrt(-2 * std::log(u));
      v[j] = mean + radius * std::cos(angle);
      v[j + 1] = mean + radius * std::sin(angle);
    }
  });
}

namespace {
constexpr char kAdvice[] =
    "draw the numbers before, and refill the tensor with copy_from; dropout draws anew in every run";

// Drawn on the host, so that every device has the same numbers.
Tensor on_device(const Tensor& t) {
  const Device d = detail::ctx.choice.device;
  if (d.is_cpu()) return t;
  Tensor moved = Tensor::empty(t.spec(), t.value->memory_class, d);
  detail::copy_bytes(moved.value->data, d, t.value->data, {}, t.bytes());
  return moved;
}

}  // namespace

Tensor uniform(const TensorSpec& spec, double low, double high, uint64_t seed) {
  detail::refuse_in_capture("uniform", kAdvice);
  const Tensor t = Tensor::empty(spec);
  detail::fill_uniform(t.value->data, spec.dtype, spec.numel(), low, high, seed);
  return on_device(t);
}

Tensor normal(const TensorSpec& spec, double mean, double deviation, uint64_t seed) {
  detail::refuse_in_capture("normal", kAdvice);
  const Tensor t = Tensor::empty(spec);
  detail::fill_normal(t.value->data, spec.dtype, spec.numel(), mean, deviation, seed);
  return on_device(t);
}

}  // namespace plumb
