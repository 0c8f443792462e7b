#include "kernels/cuda/conv2d/krsc.h"

#include <algorithm>

#include "core/memory.h"
#include "dispatch/pack.h"
#include "kernels/cuda/divide.h"
#include "kernels/cuda/element.h"
#include "kernels/cuda/launch.h"

namespace plumb::cuda {
namespace {

constexpr unsigned kThreads = 256;

// Elements of (outer, middle, inner) from anywhere, and zeros where the inner index has no element.
template <class T>
struct GatherArgs {
  const T* from;
  T* to;
  int64_t n, steps[3];  // what one more of each index adds to the place read
  int64_t there;        // of the inner index, those that have an element
  Divisor middle, inner;
};

/// The elements from number i on, of one row.
template <int kEach, class T>
__device__ Piece<T, kEach> gathered(const GatherArgs<T>& a, int64_t i) {
  int64_t inner = i, middle = a.inner.divide(inner);
  const int64_t outer = a.middle.divide(middle), first = outer * a.steps[0] + middle * a.steps[1];
  Piece<T, kEach> piece{};
  for (int j = 0; j < kEach; ++j) {
    if (inner + j < a.there) piece.of[j] = get(a.from + first + (inner + j) * a.steps[2]);
  }
  return piece;
}
/// Rows that are whole pieces of 16 bytes.
template <class T>
__global__ void __launch_bounds__(kThreads) gather_pieces_kernel(const GatherArgs<T> a) {
  constexpr int kEach = Vector<T>::kSize;
  const int64_t pieces = a.n / kEach;
#pragma unroll 1
  for (int64_t i = thread_of_grid(); i < pieces; i += threads_of_grid())
    store_piece(a.to + i * kEach, gathered<kEach>(a, i * kEach));
}
template <class T>
__global__ void __launch_bounds__(kThreads) gather_elements_kernel(const GatherArgs<T> a) {
  for_scattered<T>(
      a.n, [&](int64_t i) { return gathered<1>(a, i); },
      [&](int64_t i, const Piece<T, 1>& v) { store_piece(a.to + i, v); });
}

struct Gather {
  int64_t outer, middle, inner, there;
  int64_t steps[3];
};

// From in[0] to out[0].
std::unique_ptr<Kernel> gather_kernel(const char* name, DType dtype, const Gather& g, Device device) {
  std::unique_ptr<Kernel> kernel;
  dispatch_compute(dtype, [&]<class T>() {
    GatherArgs<T> args{};
    args.n = g.outer * g.middle * g.inner;
    std::copy(std::begin(g.steps), std::end(g.steps), args.steps);
    args.there = g.there;
    args.middle = Divisor(g.middle), args.inner = Divisor(g.inner);
    const bool in_rows = g.inner % Vector<T>::kSize == 0;
    kernel = own(name, device, 1, [args, in_rows](const Queue& q, const Launch& l) {
      GatherArgs<T> now = args;
      now.from = static_cast<const T*>(l.in[0]), now.to = static_cast<T*>(l.out[0]);
      if (in_rows) return q.launch<gather_pieces_kernel<T>>(grid_over(q.runtime(), now.n / Vector<T>::kSize), now);
      q.launch<gather_elements_kernel<T>>(grid_over(q.runtime(), now.n), now);
    });
  });
  return kernel;
}

std::unique_ptr<Kernel> to_krsc(const TensorSpec& w, int64_t channels, Device device) {
  const int64_t area = w.shape[2] * w.shape[3];
  return gather_kernel("plumb:to_krsc", w.dtype, {w.shape[0], area, channels, w.shape[1], {w.shape[1] * area, 1, area}},
                       device);
}
std::unique_ptr<Kernel> from_krsc(const TensorSpec& w, int64_t channels, Device device) {
  const int64_t area = w.shape[2] * w.shape[3];
  return gather_kernel("plumb:from_krsc", w.dtype, {w.shape[0], w.shape[1], area, area, {area * channels, 1, channels}},
                       device);
}
std::unique_ptr<Kernel> pad_channels(const TensorSpec& x, int64_t channels, Device device) {
  const int64_t pixels = x.shape[0] * x.shape[2] * x.shape[3];
  return gather_kernel("plumb:pad_channels", x.dtype, {1, pixels, channels, x.shape[1], {0, x.shape[1], 1}}, device);
}

struct KrscKey {
  TensorSpec w;
  int64_t channels;
  Device device;
  bool operator==(const KrscKey&) const = default;
};

}  // namespace

Layout krsc_pack(const TensorSpec& w, int64_t channels, Device device) {
  const auto make = [channels, device](const TensorSpec& plain) { return to_krsc(plain, channels, device); };
  const std::string name = channels == w.shape[1] ? "krsc" : message("krsc_c{}", channels);
  return register_pack(KrscKey{w, channels, device}, {name, with_channels(w, channels).bytes(), make});
}

void offer_krsc(const ConvSpecs& s, const Problem<Conv2dParams>& p, const OfferConv2d& inner, Candidates& candidates) {
  Candidates offered;
  inner({s.x, krsc(s.w), s.y}, offered);
  const auto pack = [w = s.w, device = p.device](std::unique_ptr<Kernel> kernel) -> std::unique_ptr<Kernel> {
    kernel->info().packs.push_back({1, krsc_pack(w, w.shape[1], device)});
    return kernel;
  };
  candidates.add_changed(offered, "_krsc", pack);
}

std::vector<int64_t> padded_channels(ConvDirection direction, const ConvSpecs& s, const Conv2dParams& p) {
  const bool is_first_layers =
      s.x.layout == Layout::kNhwc && p.groups == 1 && direction != ConvDirection::kBackwardInput;
  std::vector<int64_t> all;
  for (const int64_t channels : {4, 8}) {
    if (is_first_layers && s.x.shape[1] < channels) all.push_back(channels);
  }
  return all;
}

void offer_padded(ConvDirection direction, const ConvSpecs& s, const Problem<Conv2dParams>& p, int64_t channels,
                  const OfferConv2d& inner, Candidates& candidates) {
  const ConvSpecs wide{with_channels(s.x, channels), krsc(with_channels(s.w, channels)), s.y};
  const size_t of_x = plumb::detail::aligned(wide.x.bytes()), of_w = plumb::detail::aligned(wide.w.bytes());
  const Device device = p.device;
  Candidates offered;
  inner(wide, offered);

  const auto forward = [=, has_bias = p.in.size() == 3](std::unique_ptr<Kernel> product) {
    const size_t workspace = of_x + product->info().workspace_bytes;
    const int launches = 1 + product->info().launches;
    auto run = [=, pad = pad_channels(s.x, channels, device)](const Kernel& convolution, const Launch& l) {
      void* const x = l.workspace;
      pad->run({l.in, &x, nullptr, l.stream});
      void* const in[] = {x, l.in[1], has_bias ? l.in[2] : nullptr};
      convolution.run({in, l.out, static_cast<char*>(l.workspace) + of_x, l.stream});
    };
    auto kernel = wrap_kernel(std::move(product), "pad_channels+", "", std::move(run));
    kernel->info().workspace_bytes = workspace, kernel->info().launches = launches;
    kernel->info().packs.push_back({1, krsc_pack(s.w, channels, device)});
    return kernel;
  };
  const auto backward_weight = [=](std::unique_ptr<Kernel> product) {
    const size_t workspace = of_x + of_w + product->info().workspace_bytes;
    const int launches = 2 + product->info().launches;
    auto run = [=, pad = pad_channels(s.x, channels, device), cut = from_krsc(s.w, channels, device)](
                   const Kernel& convolution, const Launch& l) {
      char* const memory = static_cast<char*>(l.workspace);
      void *const x = memory, *const dw = memory + of_x;
      pad->run({l.in + 1, &x, nullptr, l.stream});
      void* const in[] = {l.in[0], x};
      convolution.run({in, &dw, memory + of_x + of_w, l.stream});
      cut->run({&dw, l.out, nullptr, l.stream});
    };
    auto kernel = wrap_kernel(std::move(product), "pad_channels+", "+from_krsc", std::move(run));
    kernel->info().workspace_bytes = workspace, kernel->info().launches = launches;
    return kernel;
  };
  const std::string suffix = message("_c{}", channels);
  if (direction == ConvDirection::kForward) return candidates.add_changed(offered, suffix, forward);
  candidates.add_changed(offered, suffix, backward_weight);
}

}  // namespace plumb::cuda
