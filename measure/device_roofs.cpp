#include "measure/device_roofs.h"

#include <algorithm>

#include "dispatch/kernel_cache.h"
#include "dispatch/policy.h"
#include "dispatch/timing.h"
#include "kernels/copy.h"
#include "kernels/matmul.h"
#include "measure/roofs.h"

namespace plumb::measure {

double DeviceRoofs::flops(DType t, MathMode m) const {
  if (t == DType::kBf16 || t == DType::kF16) return bf16;
  if (t == DType::kF64 && f64 > 0) return f64;
  return t == DType::kF32 && m == MathMode::kTf32 ? tf32 : f32;
}

double DeviceRoofs::floor(double work_bytes, double work_flops, DType t, MathMode m) const {
  const double rate = flops(t, m);
  return std::max(bytes > 0 ? work_bytes / bytes : 0, rate > 0 ? work_flops / rate : 0);
}

namespace {

// The FLOP/s of the best product, by the fastest kernel for it.
double best_product(Device device, DType t, MathMode math) {
  const DeviceScope there(device);
  Policy policy = detail::ctx.policy;
  policy.search = Search::kMeasured;
  policy.algorithm = 0;
  policy.math = math;
  const PolicyScope measured(policy);
  double best = 0;
  for (const int64_t n : {128, 512, 2048, 8192}) {
    const TensorSpec s(Shape{n, n}, t);
    const auto product = prepare<Matmul>({}, {s, s}, {s});
    detail::Scratch scratch(product->in(), product->out(), {}, device);
    const detail::Trial trial(scratch, product->in(), *product->kernel);
    const double seconds = detail::least_seconds(device, [&](Runtime::Stream stream) { trial.run(stream); }, {{5}});
    const double cubed = static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
    best = std::max(best, 2 * cubed / seconds);
    if (seconds > 0.02) break;  // the start-up cost is negligible by now; a larger product would only take longer
  }
  return best;
}

}  // namespace

void raise_arithmetic(DeviceRoofs& r, Device device) {
  r.f32 = std::max(r.f32, best_product(device, DType::kF32, MathMode::kStrict));
  if (runtime_of(device).properties().is_gpu())
    r.tf32 = std::max(r.tf32, best_product(device, DType::kF32, MathMode::kTf32));
  r.bf16 = std::max(r.bf16, best_product(device, DType::kBf16, MathMode::kStrict));
  r.f64 = std::max(r.f64, best_product(device, DType::kF64, MathMode::kStrict));
}

DeviceRoofs measure_roofs(Device device) {
  DeviceRoofs r;
  r.is_measured = true;
  raise_arithmetic(r, device);
  const DeviceProperties& p = runtime_of(device).properties();
  const size_t bytes = std::max(size_t{16} << 20, std::min(16 * p.cache_bytes, p.memory_bytes / 8));
  r.bytes = static_cast<double>(bytes) / DeviceCopy(device, bytes).least_seconds();
  return r;
}

DeviceCopy::DeviceCopy(Device device, size_t bytes)
    : runtime_(runtime_of(device)), half_(std::max<size_t>(sizeof(float), bytes / 2)) {
  const TensorSpec numbers(Shape{static_cast<int64_t>((half_ + sizeof(float) - 1) / sizeof(float))});
  for (int i = 0; i < sets_beyond_caches(bytes, device); ++i) {
    sets_.push_back(
        std::make_unique<detail::Scratch>(std::span(&numbers, 1), std::span(&numbers, 1), detail::Values{}, device));
  }
  const DeviceScope there(device);
  kernel_ = prepare<Copy>({}, {numbers}, {numbers});
  constexpr int kRounds = 5;
  by_kernel_ = least_seconds(true, kRounds) < least_seconds(false, kRounds);
}

void DeviceCopy::run(bool by_kernel, Runtime::Stream stream) {
  const detail::Scratch& s = *sets_[next_];
  if (by_kernel) {
    kernel_->kernel->run({s.in().data(), s.out().data(), nullptr, stream});
  } else {
    runtime_.copy(s.out()[0], s.in()[0], half_, Runtime::Direction::kWithin, stream);
  }
  if (++next_ == sets_.size()) next_ = 0;
}

double DeviceCopy::least_seconds(bool by_kernel, int rounds) {
  return detail::least_seconds(sets_[0]->device(), [=, this](Runtime::Stream stream) { run(by_kernel, stream); },
                               {{rounds}}, {.turns = sets()});
}

}  // namespace plumb::measure
