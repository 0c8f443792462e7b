#include "bench/roof_book.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "measure/device_roofs.h"
#include "measure/roofs.h"

namespace plumb::bench {
namespace {

struct Book {
  Device device = detail::ctx.policy.device;
  measure::Roofs host = device.is_cpu() ? measure::measure_roofs() : measure::Roofs{};
  measure::DeviceRoofs there = device.is_cpu() ? measure::DeviceRoofs{} : measure::measure_roofs(device);
  std::map<std::pair<DType, MathMode>, double> seen;          // GFLOP/s
  std::map<std::tuple<size_t, size_t, bool>, double> floors;  // bytes read, written, in place -> seconds
};
Book& book() {
  static Book b;
  return b;
}

double measured_gflops(DType t, MathMode m) {
  const Book& b = book();
  return b.device.is_cpu() ? b.host.gflops(t) : b.there.flops(t, m) / 1e9;
}

double arithmetic_roof(DType t, MathMode m) { return std::max(measured_gflops(t, m), book().seen[{t, m}]); }

// Whether a rate is one that the machine can have. A roof is of one moment and a row of another, and others may have
// used the machine in the roof's: it is measured once more before a row is said not to do its work.
bool is_possible(DType t, MathMode m, double rate) {
  constexpr double kMoments = 1.1;
  Book& b = book();
  for (int i = 0; i < 3 && rate > kMoments * measured_gflops(t, m); ++i) {
    if (b.device.is_cpu()) {
      measure::raise_arithmetic(b.host);
    } else {
      measure::raise_arithmetic(b.there, b.device);
    }
  }
  return rate <= kMoments * measured_gflops(t, m);
}

double total(const Work& w) { return static_cast<double>(w.read_bytes + w.written_bytes); }

// The least of so many rounds.
double floor_seconds(const Work& w, int rounds) {
  if (book().device.is_cpu())
    return measure::CopyFloor(w.read_bytes, w.written_bytes, w.in_place).least_seconds(rounds);
  return measure::DeviceCopy(book().device, w.read_bytes + w.written_bytes).least_seconds(rounds);
}

double& floor_of(const Work& w) {
  const auto key = std::tuple(w.read_bytes, w.written_bytes, w.in_place);
  const auto it = book().floors.find(key);
  if (it != book().floors.end()) return it->second;
  return book().floors[key] = floor_seconds(w, 10);
}

}  // namespace

double roof_of(const Work& w) {
  if (w.flops > 0) return arithmetic_roof(w.dtype, w.math);
  return total(w) / floor_of(w) / 1e9;
}

void note_rate(const Work& w, double rate) {
  if (w.flops > 0) {
    if (w.nominal || !is_possible(w.dtype, w.math, rate)) return;
    double& seen = book().seen[{w.dtype, w.math}];
    seen = std::max(seen, rate);
  } else if (w.judged && rate > roof_of(w)) {
    double& seconds = floor_of(w);
    seconds = std::min(seconds, floor_seconds(w, 50));
  }
}

std::vector<std::pair<std::string, double>> roof_summary() {
  const Book& b = book();
  const auto roof = [](DType t, MathMode m = MathMode::kStrict) { return arithmetic_roof(t, m); };
  if (!b.device.is_cpu()) {
    return {{"roof_f32_gflops", roof(DType::kF32)},
            {"roof_tf32_gflops", roof(DType::kF32, MathMode::kTf32)},
            {"roof_bf16_gflops", roof(DType::kBf16)},
            {"roof_f64_gflops", roof(DType::kF64)},
            {"copy_gbytes", b.there.bytes / 1e9}};
  }
  return {{"roof_f32_gflops", roof(DType::kF32)},      {"roof_bf16_gflops", roof(DType::kBf16)},
          {"fma_gflops", b.host.fma_gflops},           {"matmul_f32_gflops", b.host.matmul_gflops},
          {"fma_bf16_gflops", b.host.fma_bf16_gflops}, {"matmul_bf16_gflops", b.host.matmul_bf16_gflops},
          {"copy_gbytes", b.host.copy_gbytes}};
}

}  // namespace plumb::bench
