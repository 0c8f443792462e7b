#include "models/init.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/random.h"
#include "ops/random.h"

namespace plumb::models {
namespace {

void check(const char* name, const Tensor& x) {
  PLUMB_CHECK(x && is_floating(x.dtype()), "{}: the tensor is {}; make it of a floating dtype", name,
              x ? to_string(x.spec()) : "empty");
}

// Calls fill with the memory, which counts as written. Memory of a device is filled by way of the host.
template <class F>
void write(const char* name, Tensor& x, const F& fill) {
  check(name, x);
  Tensor on_host = x.device().is_cpu() ? x : Tensor::empty(x.spec(), x.value->memory_class);
  dispatch_dtype(x.dtype(), [&]<class T>() { fill(on_host.mutable_data<T>()); });
  if (!x.device().is_cpu()) x.copy_from(on_host);
}

template <class T>
T element(double value) {
  if constexpr (std::is_same_v<T, double>) {
    return value;
  } else {
    return static_cast<T>(static_cast<float>(value));
  }
}

// The deviation of N(0, 1) cut at -2 and 2.
constexpr double kTruncatedDeviation = 0.87962566103423978;

// N(0, 1) within -2 ... 2 for element i: try number k has a stream of its own, so that elements do not shift each
// other.
double truncated_number(uint64_t seed, uint64_t i) {
  for (uint64_t k = 0;; ++k) {
    const auto bits = Philox::block(seed, i, k);
    const double u = 1.0 - static_cast<double>(Philox::unit(bits[0]));  // (0, 1]
    const double angle = 2 * std::numbers::pi * static_cast<double>(Philox::unit(bits[1]));
    const double number = std::sqrt(-2 * std::log(u)) * std::cos(angle);
    if (std::abs(number) <= 2) return number;
  }
}

}  // namespace

Fans fans(const Shape& w) {
  PLUMB_CHECK((w.rank() == 2 || w.rank() == 4) && w.numel() > 0,
              "init: a weight of shape {} has no fans; it must be (OUT, IN) or (OC, IC, KH, KW)", w);
  const int64_t area = w.rank() == 4 ? w[2] * w[3] : 1;
  return {w[1] * area, w[0] * area};
}

void init_weight(Tensor& w, Convention convention, int64_t fan_in, int64_t fan_out, uint64_t seed) {
  PLUMB_CHECK(fan_in > 0 && fan_out > 0, "init: a weight with {} inputs and {} outputs", fan_in, fan_out);
  const auto in = static_cast<double>(fan_in), out = static_cast<double>(fan_out);
  const double bound = convention == Convention::kPyTorch ? 1 / std::sqrt(in) : std::sqrt(6 / (in + out));
  uniform(w, -bound, bound, seed);
}

void init_bias(Tensor& b, Convention convention, int64_t fan_in, uint64_t seed) {
  if (convention != Convention::kPyTorch) return constant(b, 0);
  PLUMB_CHECK(fan_in > 0, "init: a bias of a layer with {} inputs", fan_in);
  const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
  uniform(b, -bound, bound, seed);
}

void constant(Tensor& x, double value) {
  write("constant", x, [&]<class T>(std::span<T> data) { std::fill(data.begin(), data.end(), element<T>(value)); });
}

void uniform(Tensor& x, double low, double high, uint64_t seed) {
  check("uniform", x);
  const DeviceScope on(x.device());
  x.copy_from(plumb::uniform(x.spec(), low, high, seed));
}

void normal(Tensor& x, double mean, double deviation, uint64_t seed) {
  check("normal", x);
  const DeviceScope on(x.device());
  x.copy_from(plumb::normal(x.spec(), mean, deviation, seed));
}

void truncated_normal(Tensor& x, double deviation, uint64_t seed) {
  PLUMB_CHECK(deviation >= 0, "truncated_normal: deviation {} was asked for; use 0 or more", deviation);
  write("truncated_normal", x, [&]<class T>(std::span<T> data) {
    for (size_t i = 0; i < data.size(); ++i) data[i] = element<T>(deviation * truncated_number(seed, i));
  });
}

void variance_scaling(Tensor& w, double scale, Fan fan, Distribution distribution, uint64_t seed) {
  PLUMB_CHECK(w, "init: the weight is an empty tensor");
  const Fans f = fans(w.shape());
  const auto in = static_cast<double>(f.in), out = static_cast<double>(f.out);
  const double n = fan == Fan::kIn ? in : fan == Fan::kOut ? out : (in + out) / 2;
  PLUMB_CHECK(scale >= 0, "variance_scaling: scale {} was asked for; use 0 or more", scale);
  const double deviation = std::sqrt(scale / n);
  switch (distribution) {
    case Distribution::kUniform: return uniform(w, -std::sqrt(3.0) * deviation, std::sqrt(3.0) * deviation, seed);
    case Distribution::kNormal: return normal(w, 0, deviation, seed);
    case Distribution::kTruncatedNormal: return truncated_normal(w, deviation / kTruncatedDeviation, seed);
  }
}

}  // namespace plumb::models
