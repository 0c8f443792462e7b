#include "kernels/dropout.h"

#include <array>

#include "core/random.h"
#include "kernels/cpu/element.h"
#include "kernels/cpu/nontemporal.h"

namespace plumb::cpu {
namespace {

// Random words, made for a group of blocks at a time so that the arithmetic is vectorised.

constexpr int64_t kBlocks = 32, kGroup = 4 * kBlocks;

// Philox::block of counter, ..., counter + kBlocks - 1; word[j] holds word j of each block.
void philox_group(uint64_t key, uint64_t counter, uint32_t (&word)[4][kBlocks]) {
  for (int64_t k = 0; k < kBlocks; ++k) {
    const uint64_t c = counter + static_cast<uint64_t>(k);
    word[0][k] = static_cast<uint32_t>(c);
    word[1][k] = static_cast<uint32_t>(c >> 32);
    word[2][k] = static_cast<uint32_t>(kDropoutStream);
    word[3][k] = static_cast<uint32_t>(kDropoutStream >> 32);
  }
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int i = 0; i < Philox::kRounds; ++i, Philox::next_key(k0, k1)) {
    for (int64_t k = 0; k < kBlocks; ++k) Philox::round(word[0][k], word[1][k], word[2][k], word[3][k], k0, k1);
  }
}

// Decides which elements are kept; depends only on the state and the element's logical index.
struct Decision {
  uint64_t seed, offset;
  uint32_t threshold;
  /// keep[i] is 1 or 0 for the elements index, ..., index + kGroup - 1. index is a multiple of 4.
  void operator()(int64_t index, uint8_t* keep) const {
    uint32_t word[4][kBlocks];
    philox_group(seed, offset + static_cast<uint64_t>(index / 4), word);
    for (int64_t k = 0; k < kBlocks; ++k) {
      for (int64_t j = 0; j < 4; ++j) keep[4 * k + j] = word[j][k] >= threshold;
    }
  }
};

template <class T>
void scale_kept(const T* x, const uint8_t* keep, int64_t n, Compute<T> scale, T* y) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const Compute<T> v = load(x + i) * scale;  // loaded even if dropped: a branch would prevent vectorisation
    store(y + i, keep[i] ? v : Compute<T>(0));
  }
}

template <class T>
class Forward final : public Kernel {
 public:
  Forward(const TensorSpec& x, double p, bool needs_mask)
      : Kernel("plumb:dropout"), order_(x), n_(x.numel()), needs_mask_(needs_mask) {
    threshold_ = static_cast<uint32_t>(p * 0x1p32);
    scale_ = static_cast<Compute<T>>(1 / (1 - p));
  }
  void run(const Launch& l) const override {
    auto* state = static_cast<int64_t*>(l.in[1]);
    const Decision keep{static_cast<uint64_t>(state[0]), static_cast<uint64_t>(state[1]), threshold_};
    const Work w{static_cast<const T*>(l.in[0]), static_cast<T*>(l.out[0]),
                 needs_mask_ ? static_cast<uint8_t*>(l.out[1]) : nullptr, keep};
    order_.rows == 1 ? in_order(w) : transposed(w);
    state[1] += (n_ + 3) / 4;
  }

 private:
  struct Work {
    const T* x;
    T* y;
    uint8_t* mask;
    Decision keep;
  };
  static constexpr int64_t kRows = 128, kWidth = kGroup - 4;  // of a tile; a group may start up to 3 elements earlier

  void in_order(const Work& w) const {
    parallel_for(ceil_div(n_, kGroup), 64, [&](int64_t begin, int64_t end) {
      uint8_t keep[kGroup];
      for (int64_t g = begin; g < end; ++g) {
        w.keep(g * kGroup, keep);
        apply(w, g * kGroup, std::min(kGroup, n_ - g * kGroup), keep);
      }
    });
  }

  void transposed(const Work& w) const {
    const int64_t down = ceil_div(order_.rows, kRows), across = ceil_div(order_.columns, kWidth);
    parallel_for(order_.batch * down * across, 4, [&](int64_t begin, int64_t end) {
      uint8_t keep[kGroup], kept[kWidth][kRows];
      for (int64_t tile = begin; tile < end; ++tile) {
        const int64_t row = tile % down * kRows, column = tile / down % across * kWidth;
        const int64_t first = tile / down / across * order_.rows * order_.columns;
        const int64_t height = std::min(kRows, order_.rows - row), width = std::min(kWidth, order_.columns - column);
        for (int64_t r = 0; r < height; ++r) {
          const int64_t index = first + (row + r) * order_.columns + column, lead = index % 4;
          w.keep(index - lead, keep);
          for (int64_t c = 0; c < width; ++c) kept[c][r] = keep[lead + c];
        }
        for (int64_t c = 0; c < width; ++c) apply(w, first + (column + c) * order_.rows + row, height, kept[c]);
      }
    });
  }

  void apply(const Work& w, int64_t at, int64_t n, const uint8_t* keep) const {
    scale_kept(w.x + at, keep, n, scale_, w.y + at);
    if (w.mask) std::copy_n(keep, n, w.mask + at);
  }

  detail::DropoutOrder order_;
  int64_t n_;
  bool needs_mask_;
  uint32_t threshold_;
  Compute<T> scale_;
};

template <class T>
std::unique_ptr<Kernel> backward(int64_t n, double p) {
  return make_kernel("plumb:dropout", [n, scale = static_cast<Compute<T>>(1 / (1 - p))](const Launch& l) {
    const auto* dy = static_cast<const T*>(l.in[0]);
    const auto* mask = static_cast<const uint8_t*>(l.in[1]);
    const Source sources[] = {{dy}, {mask, 1.0 / sizeof(T)}};
    parallel_write(static_cast<T*>(l.out[0]), n, sources, [&](int64_t begin, int64_t end, T* to) {
      scale_kept(dy + begin, mask + begin, end - begin, scale, to);
    });
  });
}

}  // namespace
}  // namespace plumb::cpu

namespace plumb {

void DropoutForward::cpu(const Problem<Params>& p, Candidates& candidates) {
  cpu::dispatch_compute(p.in[0].dtype, [&]<class T>() {
    candidates.add("philox",
                   [x = p.in[0], probability = static_cast<double>(p.params.p), needs_mask = p.out.size() == 2] {
                     return std::make_unique<cpu::Forward<T>>(x, probability, needs_mask);
                   });
  });
}

void DropoutBackward::cpu(const Problem<Params>& p, Candidates& candidates) {
  cpu::dispatch_compute(p.in[0].dtype, [&]<class T>() {
    candidates.add("loop", [n = p.in[0].numel(), probability = static_cast<double>(p.params.p)] {
      return cpu::backward<T>(n, probability);
    });
  });
}

}  // namespace plumb
