#include "bench/roof_book.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "app/roofs.h"

namespace plumb::bench {
namespace {

struct Book {
  app::Roofs machine = app::measure_roofs();
  std::map<DType, double> seen;                               // GFLOP/s
  std::map<std::tuple<size_t, size_t, bool>, double> floors;  // bytes read, written, in place -> seconds
};
Book& book() {
  static Book b;
  return b;
}

double arithmetic_roof(DType t) { return std::max(book().machine.gflops(t), book().seen[t]); }

// Whether a rate is one that the machine can have. A roof is of one moment and a row of another, and others may have
// used the machine in the roof's: it is measured once more before a row is said not to do its work.
bool is_possible(DType t, double rate) {
  constexpr double kMoments = 1.1;
  app::Roofs& machine = book().machine;
  for (int i = 0; i < 3 && rate > kMoments * machine.gflops(t); ++i) app::raise_arithmetic(machine);
  return rate <= kMoments * machine.gflops(t);
}

double total(const Work& w) { return static_cast<double>(w.read_bytes + w.written_bytes); }

double& floor_of(const Work& w) {
  const auto key = std::tuple(w.read_bytes, w.written_bytes, w.in_place);
  const auto it = book().floors.find(key);
  if (it != book().floors.end()) return it->second;
  return book().floors[key] = app::CopyFloor(w.read_bytes, w.written_bytes, w.in_place).best_seconds();
}

}  // namespace

double roof_of(const Work& w) {
  if (w.flops > 0) return arithmetic_roof(w.dtype);
  return total(w) / floor_of(w) / 1e9;
}

void note_rate(const Work& w, double rate) {
  if (w.flops > 0) {
    if (!w.nominal && is_possible(w.dtype, rate)) book().seen[w.dtype] = std::max(book().seen[w.dtype], rate);
  } else if (w.judged && rate > roof_of(w)) {
    double& seconds = floor_of(w);
    seconds = std::min(seconds, app::CopyFloor(w.read_bytes, w.written_bytes, w.in_place).best_seconds(50));
  }
}

std::vector<std::pair<std::string, double>> roof_summary() {
  const Book& b = book();
  return {{"roof_f32_gflops", arithmetic_roof(DType::kF32)},
          {"roof_bf16_gflops", arithmetic_roof(DType::kBf16)},
          {"fma_gflops", b.machine.fma_gflops},
          {"matmul_f32_gflops", b.machine.matmul_gflops},
          {"matmul_bf16_gflops", b.machine.matmul_bf16_gflops},
          {"copy_gbytes", b.machine.copy_gbytes}};
}

}  // namespace plumb::bench
