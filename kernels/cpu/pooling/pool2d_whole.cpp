#include "kernels/cpu/pooling/pool2d_whole.h"

#include "kernels/cpu/parallel.h"

namespace plumb::cpu::pool {
namespace {

// The largest of the elements so far, and which it was in the window: of equals the first, of several NaN the last.
template <class T, class Index>
struct Largest {
  static constexpr float kNone = -std::numeric_limits<float>::infinity();
  Vec best;
  IntVec at;
  static Largest none() { return {kNone - Vec{}, IntVec{}}; }

  void add(Vec e, IntVec k) {
    const IntVec wins = (e > best) | (e != e);
    best = wins ? e : best;
    at = wins ? k : at;
  }
  void merge(const Largest& other) {
    const IntVec is_nan = best != best, other_is_nan = other.best != other.best;
    const IntVec larger = (other.best > best) | ((other.best == best) & (other.at < at));
    const IntVec wins = other_is_nan ? ~is_nan | (other.at > at) : ~is_nan & larger;
    best = wins ? other.best : best;
    at = wins ? other.at : at;
  }
  template <int r>
  Largest exchanged() const {
    return {simd::exchanged<r>(best), simd::exchanged<r>(at)};
  }
  // Of the first n lanes, to the elements of the outputs from `i` on.
  void put(const Launch& l, int64_t i, int64_t n, float) const {
    simd::store(static_cast<T*>(l.out[0]) + i, best, n);
    if constexpr (!std::is_same_v<Index, NoIndex>) simd::store(static_cast<Index*>(l.out[1]) + i, at, n);
  }
};

template <class T>
struct Total {
  static constexpr float kNone = 0;
  Vec sum;
  static Total none() { return {Vec{}}; }

  void add(Vec e, IntVec) { sum += e; }
  void merge(const Total& other) { sum += other.sum; }
  template <int r>
  Total exchanged() const {
    return {simd::exchanged<r>(sum)};
  }
  void put(const Launch& l, int64_t i, int64_t n, float elements) const {
    simd::store(static_cast<T*>(l.out[0]) + i, sum / elements, n);
  }
};

// Elements that a lane takes one after the other: a sum that went on would lose the digits of each.
constexpr int64_t kShort = 1024;

IntVec lane_numbers() {
  IntVec numbers{};
  for (int i = 0; i < kLanes; ++i) numbers[i] = i;
  return numbers;
}

// Planes [begin, end) of n neighbours each.
template <class T, class Found>
void pool_neighbours(const Launch& l, int64_t n, int64_t begin, int64_t end) {
  const T* x = static_cast<const T*>(l.in[0]) + begin * n;
  const IntVec numbers = lane_numbers();
  const int64_t rest = n % kLanes, whole = n - rest;
  const IntVec is_there = numbers < static_cast<int32_t>(rest);
  for (int64_t plane = begin; plane < end; ++plane, x += n) {
    const auto add = [&](Found& found, int64_t i, int64_t stop) {
      for (; i < stop; i += kLanes) found.add(simd::load(x + i), numbers + static_cast<int32_t>(i));
    };
    Found found = Found::none();
    add(found, 0, std::min(whole, kLanes * kShort));
    for (int64_t i = kLanes * kShort; i < whole; i += kLanes * kShort) {
      Found later = Found::none();
      add(later, i, std::min(whole, i + kLanes * kShort));
      found.merge(later);
    }
    if (rest) {
      found.add(is_there ? simd::load(x + whole, rest) : Found::kNone - Vec{}, numbers + static_cast<int32_t>(whole));
    }
    [&]<int... bit>(std::integer_sequence<int, bit...>) {
      ((1 << bit < kLanes ? found.merge(found.template exchanged<(1 << bit) % kLanes>()) : void()), ...);
    }
    (std::make_integer_sequence<int, 4>());
    found.put(l, plane, 1, static_cast<float>(n));
  }
}

// Of planes of n pixels of `inner` lanes, parts [begin, end): each of some lanes of all pixels, whose results stay in
// the first-level cache.
constexpr int64_t kPart = 2048;
template <class T, class Found>
void pool_pixels(const Launch& l, int64_t n, int64_t inner, int64_t begin, int64_t end) {
  const int64_t parts = ceil_div(inner, kPart);
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t plane = unit / parts, first = unit % parts * kPart, lanes = std::min(kPart, inner - first);
    const T* const x = static_cast<const T*>(l.in[0]) + plane * n * inner + first;
    const auto add = [&](Found* found, int64_t k, int64_t stop) {
      std::fill_n(found, simd::vectors_of(lanes), Found::none());
      for (; k < stop; ++k) {
        const T* const pixel = x + k * inner;
        const IntVec number = IntVec{} + static_cast<int32_t>(k);
        int64_t i = 0;
        for (; i + kLanes <= lanes; i += kLanes) found[i / kLanes].add(simd::load(pixel + i), number);
        if (i < lanes) found[i / kLanes].add(simd::load(pixel + i, lanes - i), number);
      }
    };
    Found found[kPart / kLanes];
    add(found, 0, std::min(n, kShort));
    for (int64_t k = kShort; k < n; k += kShort) {
      Found later[kPart / kLanes];
      add(later, k, std::min(n, k + kShort));
      for (int64_t v = 0; v < simd::vectors_of(lanes); ++v) found[v].merge(later[v]);
    }
    for (int64_t i = 0; i < lanes; i += kLanes) {
      found[i / kLanes].put(l, plane * inner + first + i, std::min(kLanes, lanes - i), static_cast<float>(n));
    }
  }
}

template <class T, class Found>
std::unique_ptr<Kernel> whole(const std::string& name, const Extents& g) {
  const int64_t n = g.KH * g.KW, inner = g.inner, units = g.outer * (inner == 1 ? 1 : ceil_div(inner, kPart));
  const int64_t grain = kGrainBytes / (n * std::min(inner, kPart) * static_cast<int64_t>(sizeof(T)));
  return make_kernel(message("plumb:{}:whole", name), [=](const Launch& l) {
    parallel_for(units, grain, [&](int64_t begin, int64_t end) {
      if (inner == 1) return pool_neighbours<T, Found>(l, n, begin, end);
      pool_pixels<T, Found>(l, n, inner, begin, end);
    });
  });
}

template <class T>
std::unique_ptr<Kernel> largest(const Problem<Pool2dParams>& p, const Extents& g) {
  const std::string name = MaxPool2dForward::kName;
  if (p.out.size() == 1) return whole<T, Largest<T, NoIndex>>(name, g);
  return p.out[1].dtype == DType::kU8 ? whole<T, Largest<T, uint8_t>>(name, g) : whole<T, Largest<T, int32_t>>(name, g);
}

// Planes [begin, end) of n zeros but for dy at the position of its maximum, which is one of the plane.
template <class T, class Index>
void put_largest(const Launch& l, int64_t n, int64_t begin, int64_t end) {
  const auto* dy = static_cast<const T*>(l.in[0]);
  const auto* at = static_cast<const Index*>(l.in[1]);
  T* dx = static_cast<T*>(l.out[0]) + begin * n;
  for (int64_t plane = begin; plane < end; ++plane, dx += n) {
    std::fill_n(dx, n, T{});
    dx[at[plane]] = dy[plane];
  }
}
// Planes [begin, end) of n means.
template <class T>
void put_mean(const Launch& l, int64_t n, int64_t begin, int64_t end) {
  const auto* dy = static_cast<const T*>(l.in[0]);
  T* dx = static_cast<T*>(l.out[0]) + begin * n;
  for (int64_t plane = begin; plane < end; ++plane, dx += n) {
    std::fill_n(dx, n, static_cast<T>(static_cast<float>(dy[plane]) / static_cast<float>(n)));
  }
}

template <class Put>
std::unique_ptr<Kernel> backward(const char* kind, const Extents& g, DType dtype, Put put) {
  const int64_t n = g.KH * g.KW, grain = kGrainBytes / (n * static_cast<int64_t>(size_of(dtype)));
  return make_kernel(message("plumb:{}:whole", kind), [=, planes = g.outer](const Launch& l) {
    parallel_for(planes, grain, [&](int64_t begin, int64_t end) { put(l, n, begin, end); });
  });
}

template <class T>
std::unique_ptr<Kernel> largest_backward(const Problem<Pool2dParams>& p, const Extents& g) {
  const auto put = p.in[1].dtype == DType::kU8 ? &put_largest<T, uint8_t> : &put_largest<T, int32_t>;
  return backward(MaxPool2dBackward::kName, g, p.in[0].dtype, put);
}

}  // namespace

bool is_whole(const Extents& g) {
  const bool takes_all = g.top == 0 && g.left == 0 && g.KH == g.IH && g.KW == g.IW && g.OH == 1 && g.OW == 1;
  return takes_all && (g.inner == 1 || g.inner > 4 * kLanes);
}

std::unique_ptr<Kernel> whole_max_forward(const Problem<Pool2dParams>& p, const Extents& g) {
  return p.in[0].dtype == DType::kF32 ? largest<float>(p, g) : largest<Bfloat16>(p, g);
}

std::unique_ptr<Kernel> whole_avg_forward(const Problem<Pool2dParams>& p, const Extents& g) {
  const std::string name = AvgPool2dForward::kName;
  return p.in[0].dtype == DType::kF32 ? whole<float, Total<float>>(name, g) : whole<Bfloat16, Total<Bfloat16>>(name, g);
}

std::unique_ptr<Kernel> whole_max_backward(const Problem<Pool2dParams>& p, const Extents& g) {
  if (g.inner != 1 || g.KH * g.KW == 1) return nullptr;
  return p.in[0].dtype == DType::kF32 ? largest_backward<float>(p, g) : largest_backward<Bfloat16>(p, g);
}

std::unique_ptr<Kernel> whole_avg_backward(const Problem<Pool2dParams>& p, const Extents& g) {
  if (g.inner != 1) return nullptr;
  const DType dtype = p.in[0].dtype;
  return backward(AvgPool2dBackward::kName, g, dtype, dtype == DType::kF32 ? &put_mean<float> : &put_mean<Bfloat16>);
}

}  // namespace plumb::cpu::pool
