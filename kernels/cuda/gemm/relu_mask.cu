#include "kernels/cuda/gemm/relu_mask.h"

#include "kernels/cuda/divide.h"
#include "kernels/cuda/element.h"
#include "kernels/cuda/launch.h"
#include "kernels/linear.h"

namespace plumb {
namespace {

constexpr unsigned kThreads = 256;

template <class T>
struct MaskArgs {
  T* of;  // (rows, columns)
  uint8_t* mask;
  int64_t columns, row_bytes;
  int64_t count;      // of what the threads share: bytes of the mask, or elements
  cuda::Divisor row;  // has so many of these
};

// A byte of the mask a thread.
template <class T>
__global__ void __launch_bounds__(kThreads) relu_mask_kernel(const MaskArgs<T> a) {
#pragma unroll 1
  for (int64_t i = cuda::thread_of_grid(); i < a.count; i += cuda::threads_of_grid()) {
    int64_t byte = i;
    const int64_t row = a.row.divide(byte);
    cuda::Compute<T> v[8] = {};
    for (int j = 0; j < 8; ++j) {
      const int64_t column = byte * 8 + j;
      if (column < a.columns) v[j] = cuda::load(a.of + row * a.columns + column);
    }
    unsigned bits = 0;
    for (int j = 0; j < 8; ++j) bits |= (v[j] > 0 ? 1u : 0u) << j;
    cuda::put(a.mask + i, static_cast<uint8_t>(bits));
  }
}

// An element a thread, which is not read.
template <class T>
__global__ void __launch_bounds__(kThreads) apply_mask_kernel(const MaskArgs<T> a) {
  const auto is_kept = [&](int64_t i) {
    int64_t column = i;
    const int64_t row = a.row.divide(column);
    return static_cast<uint8_t>(cuda::get(a.mask + row * a.row_bytes + column / 8) >> column % 8 & 1);
  };
  cuda::for_scattered<uint8_t>(a.count, is_kept, [&](int64_t i, uint8_t kept) {
    if (!kept) cuda::store(a.of + i, cuda::Compute<T>(0));
  });
}

}  // namespace

std::unique_ptr<Kernel> cuda::relu_mask(const TensorSpec& y, Device device) {
  std::unique_ptr<Kernel> mask;
  dispatch_compute(y.dtype, [&]<class T>() {
    const int64_t row_bytes = detail::mask_of(y).shape[1], count = detail::mask_of(y).numel();
    const MaskArgs<T> args{nullptr, nullptr, y.shape[1], row_bytes, count, Divisor(std::max<int64_t>(1, row_bytes))};
    mask = own("plumb:relu_mask", device, 1, [args](const Queue& q, const Launch& l) {
      MaskArgs<T> now = args;
      now.of = static_cast<T*>(l.out[0]), now.mask = static_cast<uint8_t*>(l.out[1]);
      q.launch<relu_mask_kernel<T>>(grid_over(q.runtime(), now.count, kThreads), now);
    });
  });
  return mask;
}

std::unique_ptr<Kernel> cuda::apply_mask(const TensorSpec& dx, Device device) {
  std::unique_ptr<Kernel> mask;
  dispatch_compute(dx.dtype, [&]<class T>() {
    const MaskArgs<T> args{nullptr,     nullptr,
                           dx.shape[1], detail::mask_of(dx).shape[1],
                           dx.numel(),  Divisor(std::max<int64_t>(1, dx.shape[1]))};
    mask = own("plumb:apply_mask", device, 1, [args](const Queue& q, const Launch& l) {
      MaskArgs<T> now = args;
      now.of = static_cast<T*>(l.out[0]), now.mask = static_cast<uint8_t*>(l.in[2]);
      q.launch<apply_mask_kernel<T>>(grid_over(q.runtime(), now.count, kThreads), now);
    });
  });
  return mask;
}

}  // namespace plumb
