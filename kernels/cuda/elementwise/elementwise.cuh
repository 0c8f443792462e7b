// The kernels around elementwise functions: 16 bytes at a time where all operands are dense, or broadcast along whole
// pieces of 16 bytes; else one element at a time.
#pragma once

#include "kernels/cpu/strided.h"
#include "kernels/cuda/divide.h"
#include "kernels/cuda/element.h"
#include "kernels/cuda/launch.h"
#include "kernels/elementwise.h"

namespace plumb::cuda {

/// Whether Op reads operand k; the others are given for their shapes alone.
template <class Op>
__host__ __device__ constexpr bool reads(size_t k) {
  return !(Op::kUnread >> k & 1);
}

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
    Piece<T, kEach> in[Op::kInputs]{}, out;
    for (size_t k = 0; k < Op::kInputs; ++k) {
      if (reads<Op>(k)) in[k] = load_piece<kEach>(a.in[k] + i);
    }
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
  int64_t n;  // elements, or pieces
  int rank;
  Divisor extent[kMaxRank];  // innermost first
  int64_t stride[kMaxRank][Op::kInputs];
  uint32_t moving;  // bit k: operand k has a piece for each piece of the result; else one element for all of it
};

/// The operands of number i.
template <class Op, class T>
__device__ std::array<const T*, Op::kInputs> operands(const StridedArgs<Op, T>& a, int64_t i) {
  std::array<const T*, Op::kInputs> in = a.in;
  int64_t rest = i;
  for (int d = 0; d < a.rank; ++d) {
    int64_t index = rest;
    rest = d + 1 < a.rank ? a.extent[d].divide(index) : 0;
    for (size_t k = 0; k < Op::kInputs; ++k) in[k] += index * a.stride[d][k];
  }
  return in;
}

template <class Op, class T>
__global__ void __launch_bounds__(256, kFewBlocks) strided_kernel(const StridedArgs<Op, T> a) {
  const auto fetch = [&](int64_t i) {
    const auto in = operands(a, i);
    std::array<Compute<T>, Op::kInputs> v{};
    for (size_t k = 0; k < Op::kInputs; ++k) {
      if (reads<Op>(k)) v[k] = load(in[k]);
    }
    return v;
  };
  const auto put_one = [&](int64_t i, const auto& v) { store(a.out + i, a.op(v)); };
  if constexpr (Op::kRare) {  // one at a time: these are more than half of the code of all elementwise kernels
#pragma unroll 1
    for (int64_t i = thread_of_grid(); i < a.n; i += threads_of_grid()) put_one(i, fetch(i));
  } else {
    for_scattered<T>(a.n, fetch, put_one);
  }
}

/// Whole pieces, so that it is found once a piece where the operands lie.
template <class Op, class T>
__global__ void __launch_bounds__(256) broadcast_kernel(const StridedArgs<Op, T> a) {
  constexpr int kEach = Vector<T>::kSize;
#pragma unroll 1
  for (int64_t i = thread_of_grid(); i < a.n; i += threads_of_grid()) {
    const auto from = operands(a, i);
    Vector<T> in[Op::kInputs]{}, out;
    for (size_t k = 0; k < Op::kInputs; ++k) {
      if (!reads<Op>(k)) continue;
      if (a.moving >> k & 1) {
        in[k] = load_piece<kEach>(from[k]);
      } else {
        const T v = get(from[k]);
        for (int j = 0; j < kEach; ++j) in[k].of[j] = v;
      }
    }
    for (int j = 0; j < kEach; ++j) {
      std::array<Compute<T>, Op::kInputs> v;
      for (size_t k = 0; k < Op::kInputs; ++k) v[k] = wide(in[k].of[j]);
      out.of[j] = rounded<T>(a.op(v));
    }
    store_piece(a.out + i * kEach, out);
  }
}

/// The loop in pieces of so many elements, if each operand has whole ones, or one element, along it. Says so.
template <class Op, class T>
bool take_pieces(StridedArgs<Op, T>& a, int64_t each) {
  if (a.rank == 0 || a.extent[0].by % each != 0) return false;
  for (size_t k = 0; k < Op::kInputs; ++k) {
    if (a.stride[0][k] == 0) continue;
    if (a.stride[0][k] != 1) return false;
    for (int d = 1; d < a.rank; ++d) {
      if (a.stride[d][k] % each != 0) return false;
    }
    a.moving |= uint32_t{1} << k;
    a.stride[0][k] = each;
  }
  a.extent[0] = Divisor(a.extent[0].by / each);
  a.n /= each;
  return true;
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
  const auto add = [&](const auto& run) { offer(candidates, "loop", "plumb:elementwise", p.device, 1, run); };
  const int64_t n = p.out[0].numel();
  if constexpr (!Op::kRare) {
    if (is_dense) {
      const DenseArgs<Op, T> args{op, nullptr, {}, n};
      return add([=](const Queue& q, const Launch& l) {
        q.launch<dense_kernel<Op, T>>(grid_over(q.runtime(), n / Vector<T>::kSize + 1), point(args, l));
      });
    }
  }
  if constexpr (Op::kRare || Op::kBroadcasts) {
    StridedArgs<Op, T> args{op, nullptr, {}, n, loop.rank, {}, {}, 0};
    for (int d = 0; d < loop.rank; ++d) {
      args.extent[d] = Divisor(std::max<int64_t>(1, loop.extent[d]));
      for (size_t k = 0; k < kInputs; ++k) args.stride[d][k] = loop.stride[k][static_cast<size_t>(d)];
    }
    if constexpr (!Op::kRare && !std::is_integral_v<T>) {
      StridedArgs<Op, T> pieces = args;
      if (take_pieces(pieces, Vector<T>::kSize)) {
        return add([=](const Queue& q, const Launch& l) {
          q.launch<broadcast_kernel<Op, T>>(grid_over(q.runtime(), pieces.n), point(pieces, l));
        });
      }
    }
    add([=](const Queue& q, const Launch& l) {
      q.launch<strided_kernel<Op, T>>(grid_over(q.runtime(), n), point(args, l));
    });
  }
}

}  // namespace plumb::cuda
