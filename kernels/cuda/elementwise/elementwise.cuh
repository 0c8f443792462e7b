// The kernels around elementwise functions: 16 bytes at a time where all operands are dense, and one element at a time
// where they are broadcast.
#pragma once

#include "kernels/cpu/strided.h"
#include "kernels/cuda/divide.h"
#include "kernels/cuda/element.h"
#include "kernels/cuda/launch.h"
#include "kernels/elementwise.h"

namespace plumb::cuda {

template <class Op, class T>
struct DenseArgs {
  Op op;
  T* out;
  std::array<const T*, Op::kInputs> in;
  int64_t n;
};

template <class Op, class T>
__global__ void __launch_bounds__(256) dense_kernel(const DenseArgs<Op, T> a) {
  for_dense<Vector<T>::kSize>(a.n, [&]<int kEach>(int64_t i) {
    Piece<T, kEach> in[Op::kInputs], out;
    for (size_t k = 0; k < Op::kInputs; ++k) in[k] = load_piece<kEach>(a.in[k] + i);
    for (int j = 0; j < kEach; ++j) {
      std::array<Compute<T>, Op::kInputs> v;
      for (size_t k = 0; k < Op::kInputs; ++k) v[k] = wide(in[k].of[j]);
      out.of[j] = rounded<T>(a.op(v));
    }
    store_piece(a.out + i, out);
  });
}

template <class Op, class T>
struct StridedArgs {
  Op op;
  T* out;
  std::array<const T*, Op::kInputs> in;
  int64_t n;
  int rank;
  Divisor extent[kMaxRank];  // innermost first
  int64_t stride[kMaxRank][Op::kInputs];
};

template <class Op, class T>
__global__ void __launch_bounds__(256, kFewBlocks) strided_kernel(const StridedArgs<Op, T> a) {
  const auto fetch = [&](int64_t i) {
    std::array<const T*, Op::kInputs> in = a.in;
    int64_t rest = i;
    for (int d = 0; d < a.rank; ++d) {
      int64_t index = rest;
      rest = a.extent[d].divide(index);
      for (size_t k = 0; k < Op::kInputs; ++k) in[k] += index * a.stride[d][k];
    }
    std::array<Compute<T>, Op::kInputs> v;
    for (size_t k = 0; k < Op::kInputs; ++k) v[k] = load(in[k]);
    return v;
  };
  for_scattered<T>(a.n, fetch, [&](int64_t i, const auto& v) { store(a.out + i, a.op(v)); });
}

/// Op is a stage (kernels/functors/stages.h).
template <class Op, class T>
void add_candidate(const Op& op, const Problem<NoParams>& p, Candidates& candidates) {
  constexpr size_t kInputs = Op::kInputs;
  std::array<Strides, kInputs> strides;
  for (size_t k = 0; k < kInputs; ++k) strides[k] = cpu::broadcast_strides(p.in[k], p.out[0].shape);
  const auto loop = cpu::strided_loop(p.out[0], strides);
  bool is_dense = loop.rank == 1;
  for (size_t k = 0; k < kInputs; ++k) is_dense &= loop.extent[0] == 1 || loop.stride[k][0] == 1;
  const auto point = [](auto args, const Launch& l) {
    args.out = static_cast<T*>(l.out[0]);
    for (size_t k = 0; k < kInputs; ++k) args.in[k] = static_cast<const T*>(l.in[k]);
    return args;
  };
  const int64_t n = p.out[0].numel();
  if constexpr (!Op::kRare) {
    if (is_dense) {
      const DenseArgs<Op, T> args{op, nullptr, {}, n};
      return offer(candidates, "loop", "plumb:elementwise", p.device, 1, [=](const Queue& q, const Launch& l) {
        q.launch<dense_kernel<Op, T>>(grid_over(q.runtime(), n / Vector<T>::kSize + 1), point(args, l));
      });
    }
  }
  if constexpr (Op::kRare || Op::kBroadcasts) {
    StridedArgs<Op, T> args{op, nullptr, {}, n, loop.rank, {}, {}};
    for (int d = 0; d < loop.rank; ++d) {
      args.extent[d] = Divisor(std::max<int64_t>(1, loop.extent[d]));
      for (size_t k = 0; k < kInputs; ++k) args.stride[d][k] = loop.stride[k][static_cast<size_t>(d)];
    }
    offer(candidates, "loop", "plumb:elementwise", p.device, 1, [=](const Queue& q, const Launch& l) {
      q.launch<strided_kernel<Op, T>>(grid_over(q.runtime(), n), point(args, l));
    });
  }
}

}  // namespace plumb::cuda
