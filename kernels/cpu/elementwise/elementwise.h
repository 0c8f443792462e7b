// The loop around elementwise functions. All share one kernel class; only the innermost row is compiled for each
// function, dtype and pattern of strides.
#pragma once

#include <array>
#include <cstring>

#include "kernels/cpu/element.h"
#include "kernels/cpu/offer.h"
#include "kernels/cpu/strided.h"
#include "kernels/elementwise.h"

namespace plumb::cpu {

inline constexpr size_t kMaxOperands = 4;

/// One row of n elements: out[i] = op applied to in[k] + i * stride[k] for all k.
using Row = void (*)(const void* op, void* out, const void* const* in, const int64_t* stride, int64_t n);

/// A function: its attributes as bytes, and its rows for three patterns of operands: all dense, all dense except a
/// constant last one, and any strides.
struct RowFunction {
  std::array<std::byte, 16> op;
  Row dense, last_constant, any;
  size_t inputs;
  unsigned unread;  ///< bit k: operand k is given for its shape alone
};

/// The kernel of a function on operands that broadcast to out.
std::unique_ptr<Kernel> elementwise_kernel(const RowFunction& f, std::span<const TensorSpec> in, const TensorSpec& out);

namespace rows {

// Each row function starts at an instruction cache line: otherwise an op on one element takes up to a nanosecond
// longer, depending on where the linker puts it.

template <class Op, class T, class StrideOf>
void row_of(const void* op_bytes, void* out_data, const void* const* in_data, int64_t n, StrideOf stride) {
  const Op op = *static_cast<const Op*>(op_bytes);
  auto* out = static_cast<T*>(out_data);
  std::array<const T*, Op::kInputs> in;
  for (size_t k = 0; k < Op::kInputs; ++k) in[k] = static_cast<const T*>(in_data[k]);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    std::array<Compute<T>, Op::kInputs> v;
    for (size_t k = 0; k < Op::kInputs; ++k) v[k] = load(in[k] + i * stride(k));
    store(out + i, op(v));
  }
}
template <class Op, class T>
[[gnu::aligned(64)]] void dense_row(const void* op, void* out, const void* const* in, const int64_t*, int64_t n) {
  row_of<Op, T>(op, out, in, n, [](size_t) { return int64_t{1}; });
}
template <class Op, class T>
[[gnu::aligned(64)]] void last_constant_row(const void* op, void* out, const void* const* in, const int64_t*,
                                            int64_t n) {
  row_of<Op, T>(op, out, in, n, [](size_t k) { return int64_t{k + 1 != Op::kInputs}; });
}
template <class Op, class T>
[[gnu::aligned(64)]] void any_row(const void* op, void* out, const void* const* in, const int64_t* stride, int64_t n) {
  row_of<Op, T>(op, out, in, n, [stride](size_t k) { return stride[k]; });
}

}  // namespace rows

/// Op has kInputs and operator()(std::array<C, kInputs>). kBroadcasts: its operands may have strides other than 1.
/// kRare (second derivatives): one row function handles all strides, which compiles much faster.
template <class Op, class T>
RowFunction row_function(const Op& op) {
  static_assert(sizeof(Op) <= 16 && std::is_trivially_copyable_v<Op>);
  RowFunction f{{}, nullptr, nullptr, nullptr, Op::kInputs, Op::kUnread};
  if constexpr (!std::is_empty_v<Op>) std::memcpy(f.op.data(), &op, sizeof op);
  if constexpr (Op::kRare) {
    f.dense = f.last_constant = f.any = &rows::any_row<Op, T>;
  } else {
    f.dense = &rows::dense_row<Op, T>;
    if constexpr (Op::kBroadcasts) {
      f.last_constant = &rows::last_constant_row<Op, T>;
      f.any = &rows::any_row<Op, T>;
    }
  }
  return f;
}

/// Offers a function's loop.
inline Offer loop_of(const RowFunction& f, const Problem<NoParams>& p) {
  return {"loop", Provider::kPlumbline, [f, in = std::vector<TensorSpec>(p.in.begin(), p.in.end()), out = p.out[0]] {
            return elementwise_kernel(f, in, out);
          }};
}

}  // namespace plumb::cpu
