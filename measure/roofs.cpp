#include "measure/roofs.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "core/random.h"
#include "dispatch/timing.h"
#include "kernels/cpu/bf16_rate.h"
#include "kernels/cpu/nontemporal.h"
#include "kernels/cpu/simd.h"
#include "kernels/threads.h"
#include "ops/matmul.h"
#include "ops/random.h"

namespace plumb::measure {
namespace {

using cpu::simd::kLanes;
using cpu::simd::Vec;

// Independent chains of multiply-adds: enough to hide their latency, few enough for the registers.
double fma_gflops() {
  constexpr int kChains = 12;
  constexpr int64_t kRounds = 4 << 20;
  const int team = threads();
  const auto chains = [&](Runtime::Stream) {
    cpu::parallel_team(team, [&](int, int) {
      Vec v[kChains];
      for (int c = 0; c < kChains; ++c) v[c] = Vec{} + static_cast<float>(c);
      Vec scale = Vec{} + 0.999f, shift = Vec{} + 0.001f;
      asm volatile("" : "+x"(scale), "+x"(shift));
      for (int64_t i = 0; i < kRounds; ++i) {
        for (int c = 0; c < kChains; ++c) v[c] = v[c] * scale + shift;
      }
      for (int c = 0; c < kChains; ++c) asm volatile("" : : "x"(v[c]));
    });
  };
  const double seconds = detail::least_seconds(Device(), chains, {{5}});
  return 2.0 * kChains * static_cast<double>(kLanes * kRounds) * team / seconds / 1e9;
}

// The same in bf16; 0 where a processor has no instructions for it.
double fma_bf16_gflops() {
  const int team = threads();
  double operations = 0;  // of the first thread
  const auto all = [&](Runtime::Stream) {
    cpu::parallel_team(team, [&](int t, int) {
      const double own = cpu::multiply_bf16(16 << 10);
      if (t == 0) operations = own;
    });
  };
  const double seconds = detail::least_seconds(Device(), all, {{5}});
  return operations * team / seconds / 1e9;
}

double matmul_gflops(DType t) {
  const NoGrad no_grad;
  double best = 0;
  for (const int64_t n : {512, 1024, 2048}) {
    const Tensor a = uniform(TensorSpec(Shape{n, n}, t), -1, 1, 1), b = uniform(TensorSpec(Shape{n, n}, t), -1, 1, 2);
    const double seconds = detail::least_seconds(Device(), [&](Runtime::Stream) { matmul(a, b); }, {{5}});
    const double cubed = static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
    best = std::max(best, 2 * cubed / seconds / 1e9);
    if (seconds > 0.02) break;  // the start-up cost is negligible by now; a larger product would only take longer
  }
  return best;
}

double copy_gbytes() {
  constexpr size_t kBytes = size_t{256} << 20;
  return 2.0 * static_cast<double>(kBytes) / CopyFloor(kBytes, kBytes).least_seconds() / 1e9;
}

void read(const uint8_t* data, size_t bytes) {
  constexpr size_t kStreams = 4;
  Vec sum[kStreams] = {};
  size_t i = 0;
  for (; i + kStreams * sizeof(Vec) <= bytes; i += kStreams * sizeof(Vec)) {
    for (size_t s = 0; s < kStreams; ++s) sum[s] += *reinterpret_cast<const Vec*>(data + i + s * sizeof(Vec));
  }
  for (const Vec& s : sum) asm volatile("" : : "x"(s));
}

void update(uint8_t* data, size_t bytes) {
  for (size_t i = 0; i + sizeof(Vec) <= bytes; i += sizeof(Vec)) {
    auto* v = reinterpret_cast<Vec*>(data + i);
    *v = -*v;  // not smaller: some processors write lines of zeros at twice the speed
  }
}

// Data to write without reading a source. Not zeros, since some processors write lines of zeros at twice the speed.
struct Surplus {
  alignas(64) uint8_t bytes[16 << 10];
  constexpr Surplus() : bytes() {
    for (size_t i = 0; i < sizeof bytes; ++i) bytes[i] = static_cast<uint8_t>(37 * i + 1);
  }
};
constexpr Surplus kSurplus;

}  // namespace

double Roofs::gflops(DType t) const {
  if (t == DType::kF64) return gflops() / 2;  // half as many lanes
  return t == DType::kBf16 ? std::max({gflops(), fma_bf16_gflops, matmul_bf16_gflops}) : gflops();
}

Roofs measure_roofs() {
  Roofs r;
  raise_arithmetic(r);
  r.copy_gbytes = copy_gbytes();
  return r;
}

void raise_arithmetic(Roofs& roofs) {
  roofs.fma_gflops = std::max(roofs.fma_gflops, fma_gflops());
  roofs.matmul_gflops = std::max(roofs.matmul_gflops, matmul_gflops(DType::kF32));
  roofs.fma_bf16_gflops = std::max(roofs.fma_bf16_gflops, fma_bf16_gflops());
  roofs.matmul_bf16_gflops = std::max(roofs.matmul_bf16_gflops, matmul_gflops(DType::kBf16));
}

int sets_beyond_caches(size_t bytes, Device device) {
  size_t caches = size_t{32} << 20;
  if (!device.is_cpu()) {
    caches = runtime_of(device).properties().cache_bytes;
  } else if (const long last_level = sysconf(_SC_LEVEL3_CACHE_SIZE); last_level > 0) {
    caches = static_cast<size_t>(last_level);
  }
  if (bytes > 2 * caches) return 1;
  return static_cast<int>(std::min<size_t>(64, 2 * caches / std::max<size_t>(bytes, 1) + 1));
}

CopyFloor::CopyFloor(size_t read_bytes, size_t written_bytes, bool in_place)
    : read_(read_bytes), written_(written_bytes), in_place_(in_place) {
  PLUMB_CHECK(!in_place || written_ <= read_, "copy floor: {} bytes cannot be written in place of {}", written_, read_);
  const int sets = sets_beyond_caches(read_ + (in_place ? 0 : written_));
  for (int i = 0; i < sets; ++i) {
    from_.push_back(detail::block_of(read_));
    detail::fill_uniform(from_.back().get(), DType::kF32, static_cast<int64_t>(read_ / 4), -1, 1,
                         static_cast<uint64_t>(i));
    if (in_place) continue;
    to_.push_back(detail::block_of(written_));
    std::memset(to_.back().get(), 0, written_);
  }
  constexpr size_t kWorthThreads = size_t{4} << 20;
  std::vector<Way> ways;
  std::vector<detail::Run> runs;
  for (const Way w : {Way{true, false}, Way{false, false}, Way{true, true}, Way{false, true}}) {
    if (w.one_thread && read_ + written_ > kWorthThreads) continue;
    ways.push_back(w);
    runs.push_back([this, w](Runtime::Stream) { run(w); });
  }
  const detail::Fastest fastest = detail::fastest_of(Device(), runs);
  way_ = ways[fastest.index];
  least_ = fastest.seconds;
}

std::string CopyFloor::way() const {
  return std::string(way_.streams && !in_place_ ? "past" : "through") + " the caches" +
         (way_.one_thread ? " on one thread" : "");
}

void CopyFloor::run(Way way) { move(way, static_cast<int>(next_++ % from_.size())); }

double CopyFloor::least_seconds(int rounds) {
  least_ = std::min(least_, detail::least_seconds(Device(), [this](Runtime::Stream) { run(); }, {{rounds}}));
  return least_;
}

void CopyFloor::move(Way way, int set) const {
  constexpr size_t kPiece = 8 << 10;
  const size_t pieces = std::max(read_, written_) / kPiece + 1;
  const auto count = static_cast<int64_t>(pieces);
  cpu::parallel_for(count, way.one_thread ? count : 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) move_piece(way, set, static_cast<size_t>(i), pieces);
    if (way.streams) cpu::nontemporal_fence();
  });
}

// Each piece reads and writes its share of the bytes; if one share is larger, its rest is only read, or only written.
void CopyFloor::move_piece(Way way, int set, size_t piece, size_t pieces) const {
  constexpr size_t kLine = 64;
  const auto cut = [pieces](size_t bytes, size_t i) { return bytes * i / pieces / kLine * kLine; };
  const auto copy = [&](uint8_t* target, const uint8_t* source, size_t bytes) {
    if (way.streams) return cpu::copy_nontemporal(target, source, static_cast<int64_t>(bytes));
    std::memcpy(target, source, bytes);
  };
  auto* from = static_cast<uint8_t*>(from_[static_cast<size_t>(set)].get());
  const size_t target = cut(written_, piece), writes = cut(written_, piece + 1) - target;
  if (in_place_) {
    update(from + target, writes);
    const size_t others = read_ - written_, at = (written_ + kLine - 1) / kLine * kLine + cut(others, piece);
    read(from + at, std::min(cut(others, piece + 1) - cut(others, piece), read_ - std::min(read_, at)));
    return;
  }
  auto* to = static_cast<uint8_t*>(to_[static_cast<size_t>(set)].get());
  const size_t source = cut(read_, piece), reads = cut(read_, piece + 1) - source, both = std::min(reads, writes);
  copy(to + target, from + source, both);
  read(from + source + both, reads - both);
  copy(to + target + both, kSurplus.bytes, writes - both);
}

}  // namespace plumb::measure
