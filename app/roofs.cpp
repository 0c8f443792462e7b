#include "app/roofs.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "core/memory.h"
#include "core/random.h"
#include "kernels/cpu/stream.h"
#include "ops/matmul.h"

namespace plumb::app {
namespace {

template <class F>
double seconds_of(F&& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

template <class F>
double best_seconds_of(int rounds, F&& f) {
  double best = 1e30;
  for (int i = 0; i < rounds; ++i) best = std::min(best, seconds_of(f));
  return best;
}

#ifdef __AVX512F__
constexpr int kVectorBytes = 64;
#else
constexpr int kVectorBytes = 32;
#endif
typedef float Vector __attribute__((vector_size(kVectorBytes)));

// Independent chains of multiply-adds: enough to hide their latency, few enough for the registers.
double fma_gflops() {
  constexpr int kChains = 12, kLanes = kVectorBytes / 4;
  constexpr int64_t kRounds = 4 << 20;
  const int team = threads();
  const double seconds = best_seconds_of(5, [&] {
    cpu::parallel_team(team, [&](int, int) {
      Vector v[kChains];
      for (int c = 0; c < kChains; ++c) v[c] = Vector{} + static_cast<float>(c);
      Vector scale = Vector{} + 0.999f, shift = Vector{} + 0.001f;
      asm volatile("" : "+x"(scale), "+x"(shift));
      for (int64_t i = 0; i < kRounds; ++i) {
        for (int c = 0; c < kChains; ++c) v[c] = v[c] * scale + shift;
      }
      for (int c = 0; c < kChains; ++c) asm volatile("" : : "x"(v[c]));
    });
  });
  return 2.0 * kChains * kLanes * static_cast<double>(kRounds) * team / seconds / 1e9;
}

double matmul_gflops(DType t) {
  const NoGrad no_grad;
  double best = 0;
  for (const int64_t n : {512, 1024, 2048}) {
    const Tensor a = uniform(TensorSpec(Shape{n, n}, t), -1, 1, 1), b = uniform(TensorSpec(Shape{n, n}, t), -1, 1, 2);
    const double seconds = best_seconds_of(5, [&] { matmul(a, b); });
    const double cubed = static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
    best = std::max(best, 2 * cubed / seconds / 1e9);
  }
  return best;
}

double copy_gbytes() {
  constexpr size_t kBytes = size_t{256} << 20;
  return 2.0 * static_cast<double>(kBytes) / CopyFloor(kBytes, kBytes).best_seconds() / 1e9;
}

void read(const uint8_t* data, size_t bytes) {
  constexpr size_t kStreams = 4;
  Vector sum[kStreams] = {};
  size_t i = 0;
  for (; i + kStreams * sizeof(Vector) <= bytes; i += kStreams * sizeof(Vector)) {
    for (size_t s = 0; s < kStreams; ++s) sum[s] += *reinterpret_cast<const Vector*>(data + i + s * sizeof(Vector));
  }
  for (const Vector& s : sum) asm volatile("" : : "x"(s));
}

}  // namespace

double Roofs::gflops(DType t) const { return t == DType::kBf16 ? std::max(gflops(), matmul_bf16_gflops) : gflops(); }

Roofs measure_roofs() { return {fma_gflops(), matmul_gflops(DType::kF32), matmul_gflops(DType::kBf16), copy_gbytes()}; }

int sets_beyond_caches(size_t bytes) {
  const long last_level = sysconf(_SC_LEVEL3_CACHE_SIZE);
  const size_t caches = last_level > 0 ? static_cast<size_t>(last_level) : size_t{32} << 20;
  if (bytes > 2 * caches) return 1;
  return static_cast<int>(std::min<size_t>(64, 2 * caches / std::max<size_t>(bytes, 1) + 1));
}

// ---- CopyFloor

CopyFloor::CopyFloor(size_t read_bytes, size_t written_bytes) : read_(read_bytes), written_(written_bytes) {
  const int sets = sets_beyond_caches(read_ + written_);
  for (int i = 0; i < sets; ++i) {
    from_.push_back(static_cast<char*>(cpu_memory().get(read_ + kVectorBytes, MemoryClass::kWorkspace)));
    to_.push_back(static_cast<char*>(cpu_memory().get(written_ + kVectorBytes, MemoryClass::kWorkspace)));
    fill_uniform(from_.back(), DType::kF32, static_cast<int64_t>(read_ / 4), -1, 1, static_cast<uint64_t>(i));
    std::memset(to_.back(), 0, written_);
  }
  double best[2] = {1e30, 1e30};
  for (int round = 0; round < 4; ++round) {
    for (const Way w : {kStream, kThrough}) best[w] = std::min(best[w], seconds(w));
  }
  way_ = best[kStream] <= best[kThrough] ? kStream : kThrough;
  best_ = best[way_];
}

CopyFloor::~CopyFloor() {
  for (char* block : from_) cpu_memory().put(block, read_ + kVectorBytes, MemoryClass::kWorkspace);
  for (char* block : to_) cpu_memory().put(block, written_ + kVectorBytes, MemoryClass::kWorkspace);
}

const char* CopyFloor::way() const { return way_ == kStream ? "past the caches" : "through the caches"; }

double CopyFloor::seconds(Way way) {
  return seconds_of([&] { move(way, static_cast<int>(next_++ % from_.size())); });
}

void CopyFloor::run() { move(way_, static_cast<int>(next_++ % from_.size())); }

double CopyFloor::best_seconds(int rounds) {
  for (int i = 0; i < rounds; ++i) best_ = std::min(best_, seconds(way_));
  return best_;
}

// In pieces of both, of which what is read or written beyond the other's size is only read or written.
void CopyFloor::move(Way way, int set) {
  const auto* from = reinterpret_cast<const uint8_t*>(from_[static_cast<size_t>(set)]);
  auto* to = reinterpret_cast<uint8_t*>(to_[static_cast<size_t>(set)]);
  constexpr size_t kPiece = 8 << 10, kLine = 64;
  alignas(kLine) static constexpr uint8_t kZeros[kPiece + kLine] = {};
  const size_t pieces = std::max(read_, written_) / kPiece + 1;
  const auto cut = [&](size_t bytes, size_t piece) { return bytes * piece / pieces / kLine * kLine; };
  const auto copy = [&](uint8_t* target, const uint8_t* source, size_t bytes) {
    if (way == kStream) return cpu::stream(target, source, static_cast<int64_t>(bytes));
    std::memcpy(target, source, bytes);
  };
  const auto grain = static_cast<int64_t>(cpu::kGrainBytes / kPiece);
  cpu::parallel_for(static_cast<int64_t>(pieces), grain, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      const size_t source = cut(read_, i), target = cut(written_, i);
      const size_t reads = cut(read_, i + 1) - source, writes = cut(written_, i + 1) - target;
      const size_t both = std::min(reads, writes);
      copy(to + target, from + source, both);
      read(from + source + both, reads - both);
      copy(to + target + both, kZeros, writes - both);
    }
    if (way == kStream) cpu::stream_fence();
  });
}

}  // namespace plumb::app
