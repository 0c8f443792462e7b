#include "core/random.h"

#include "core/error.h"

namespace plumb::detail {

Distribution uniform_distribution(DType dtype, double low, double high) {
  const bool whole = !is_floating(dtype);
  const double first = whole ? std::ceil(low) : low, last = whole ? std::floor(high) : high;
  PLUMB_CHECK(first <= last && std::isfinite(last - first), "uniform: there are no numbers of dtype {} from {} to {}",
              dtype, low, high);
  const double least = dtype == DType::kU8 ? 0 : -0x1p31, most = dtype == DType::kU8 ? 255 : 0x1p31 - 1;
  PLUMB_CHECK(!whole || (first >= least && last <= most),
              "uniform: {} to {} was asked for; numbers of dtype {} are drawn from within {} to {}", low, high, dtype,
              least, most);
  return {first, last - first + (whole ? 1 : 0), whole ? Distribution::Kind::kWhole : Distribution::Kind::kUniform};
}

Distribution normal_distribution(DType dtype, double mean, double deviation) {
  PLUMB_CHECK(is_floating(dtype) && std::isfinite(mean) && std::isfinite(deviation) && deviation >= 0,
              "normal: dtype {}, mean {} and deviation {} were asked for; use a floating dtype, a finite mean and a "
              "finite deviation of 0 or more",
              dtype, mean, deviation);
  return {mean, deviation, Distribution::Kind::kNormal};
}

void fill_random(void* data, DType dtype, int64_t begin, int64_t end, const Distribution& d, uint64_t seed) {
  dispatch_dtype(dtype, [&]<class T>() {
    auto* out = static_cast<T*>(data);
    for (int64_t i = begin; i < end; i += 4) {
      double v[4];
      d.numbers(Philox::block(seed, static_cast<uint64_t>(i / 4), 0), v);
      for (int64_t j = 0; j < 4 && i + j < end; ++j) out[i + j] = Distribution::rounded<T>(v[j]);
    }
  });
}

}  // namespace plumb::detail
