// Backward weight: for each element of the window, the products of all channels of dy with all channels of x, summed
// over pixels and images. The sums of a block of channels stay in registers, a vector of images wide; their lanes are
// added up at the end.
#include <array>
#include <utility>

#include "kernels/cpu/conv2d/conv2d_chwn.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/range.h"
#include "kernels/cpu/simd.h"

namespace plumb::cpu {
namespace {

using simd::kLanes;
using simd::Vec;

// A block's channels of dy and of x: their products fit in registers, beside the vectors of x and one of dy.
constexpr int kMostOut = simd::kRegisters == 32 ? 5 : 3;
constexpr int kMostIn = simd::kRegisters == 32 ? 5 : 4;
// How many elements of the window are summed at the same time.
constexpr int64_t kMostTaps = 9;
// Elements of a row that are processed for all taps of a window row, so that they stay in the first-level cache.
constexpr int64_t kTile = 512;

struct Plan {
  int64_t N, groups, OC, IC, IH, IW, OH, OW, KH, KW;  // OC and IC per group
  Conv2dParams p;
};

// Elements of dy and x to multiply: `runs` contiguous runs of `length` each.
struct Runs {
  int64_t runs, length, out_step, in_step;
};

// total[i][j] += the sum over the runs of out[i] * in[j]; channels are one plane apart.
template <class T, int kOut, int kIn>
void multiply(const T* out, int64_t out_plane, const T* in, int64_t in_plane, const Runs& r, Vec* total) {
  Vec sum[kOut][kIn] = {};
  const auto step = [&](const T* a, const T* b, auto load) __attribute__((always_inline)) {
    Vec e[kIn];
#pragma GCC unroll 8
    for (int j = 0; j < kIn; ++j) e[j] = load(b + j * in_plane);
#pragma GCC unroll 8
    for (int i = 0; i < kOut; ++i) {
      const Vec f = load(a + i * out_plane);
#pragma GCC unroll 8
      for (int j = 0; j < kIn; ++j) sum[i][j] += f * e[j];
    }
  };
  for (int64_t run = 0; run < r.runs; ++run, out += r.out_step, in += r.in_step) {
    int64_t k = 0;
    for (; k + kLanes <= r.length; k += kLanes) step(out + k, in + k, [](const T* p) { return simd::load(p); });
    if (const int64_t left = r.length - k; left > 0)
      step(out + k, in + k, [=](const T* p) { return simd::load(p, left); });
  }
#pragma GCC unroll 8
  for (int i = 0; i < kOut; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < kIn; ++j) total[i * kIn + j] += sum[i][j];
  }
}

template <class T>
using Multiply = void (*)(const T*, int64_t, const T*, int64_t, const Runs&, Vec*);
template <class T, int... sizes>
constexpr std::array<Multiply<T>, sizeof...(sizes)> multiplies_of(std::integer_sequence<int, sizes...>) {
  return {&multiply<T, sizes / kMostIn + 1, sizes % kMostIn + 1>...};
}
// Indexed by (channels of dy - 1) * kMostIn + channels of x - 1.
template <class T>
constexpr auto kMultiplies = multiplies_of<T>(std::make_integer_sequence<int, kMostOut * kMostIn>());

template <class T>
class WeightKernel final : public Kernel {
 public:
  explicit WeightKernel(const Plan& plan) : Kernel("plumb:chwn_direct"), p_(plan) {}
  void run(const Launch& l) const override {
    const int64_t outs = ceil_div(p_.OC, kMostOut), ins = ceil_div(p_.IC, kMostIn);
    const int64_t window = p_.KH * p_.KW, parts = ceil_div(window, kMostTaps);
    parallel_for(p_.groups * outs * ins * parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t group = i / parts / ins / outs;
        run_block(l, group, piece(p_.OC, i / parts / ins % outs, outs), piece(p_.IC, i / parts % ins, ins),
                  piece(window, i % parts, parts));
      }
    });
  }

 private:
  void run_block(const Launch& l, int64_t group, Range out, Range in, Range taps) const {
    const int64_t out_plane = p_.OH * p_.OW * p_.N, in_plane = p_.IH * p_.IW * p_.N, window = p_.KH * p_.KW;
    const T* dy = static_cast<const T*>(l.in[0]) + (group * p_.OC + out.begin) * out_plane;
    const T* x = static_cast<const T*>(l.in[1]) + (group * p_.IC + in.begin) * in_plane;
    T* dw = static_cast<T*>(l.out[0]) + ((group * p_.OC + out.begin) * p_.IC + in.begin) * window;
    const auto multiply = kMultiplies<T>[static_cast<size_t>((out.size() - 1) * kMostIn + in.size() - 1)];
    Vec total[kMostTaps][kMostOut * kMostIn] = {};
    const int64_t tile = std::max<int64_t>(1, kTile / std::max<int64_t>(1, p_.N));
    for (int64_t oh = 0; oh < p_.OH; ++oh) {
      for (int64_t ow = 0; ow < p_.OW; ow += tile) {
        for (int64_t tap = taps.begin; tap < taps.end; ++tap) {
          const int64_t ih = oh * p_.p.stride[0] - p_.p.padding[0] + tap / p_.KW * p_.p.dilation[0];
          const int64_t shift = tap % p_.KW * p_.p.dilation[1] - p_.p.padding[2];
          if (ih < 0 || ih >= p_.IH) continue;
          const Range columns = inside(shift, ow, std::min(p_.OW, ow + tile));
          if (columns.size() <= 0) continue;
          const int64_t from = (ih * p_.IW + columns.begin * p_.p.stride[1] + shift) * p_.N;
          multiply(dy + (oh * p_.OW + columns.begin) * p_.N, out_plane, x + from, in_plane, runs(columns.size()),
                   total[tap - taps.begin]);
        }
      }
    }
    for (int64_t i = 0; i < out.size(); ++i) {
      for (int64_t j = 0; j < in.size(); ++j) {
        for (int64_t tap = taps.begin; tap < taps.end; ++tap) {
          const Vec& v = total[tap - taps.begin][i * in.size() + j];
          float sum = 0;
          for (int k = 0; k < kLanes; ++k) sum += v[k];
          dw[(i * p_.IC + j) * window + tap] = static_cast<T>(sum);
        }
      }
    }
  }
  // Those of dy's columns [begin, end) that meet an element inside x.
  Range inside(int64_t shift, int64_t begin, int64_t end) const {
    const int64_t s = p_.p.stride[1];
    if (shift < 0) begin = std::max(begin, ceil_div(-shift, s));
    return {begin, p_.IW <= shift ? begin : std::min(end, ceil_div(p_.IW - shift, s))};
  }
  Runs runs(int64_t columns) const {
    if (p_.p.stride[1] == 1) return {1, columns * p_.N, 0, 0};  // neighbours in dy are also neighbours in x
    return {columns, p_.N, p_.N, p_.p.stride[1] * p_.N};
  }
  Plan p_;
};

}  // namespace

std::unique_ptr<Kernel> conv2d_chwn_backward_weight(const Problem<Conv2dParams>& p) {
  const TensorSpec &dy = p.in[0], &x = p.in[1], &dw = p.out[0];
  if (!conv2d_chwn_fits(dy, dw, x)) return nullptr;
  const Plan plan{x.shape[0],  p.params.groups, dw.shape[0] / p.params.groups,
                  dw.shape[1], x.shape[2],      x.shape[3],
                  dy.shape[2], dy.shape[3],     dw.shape[2],
                  dw.shape[3], p.params};
  if (dw.dtype == DType::kBf16) return std::make_unique<WeightKernel<Bfloat16>>(plan);
  return std::make_unique<WeightKernel<float>>(plan);
}

}  // namespace plumb::cpu
