// What the references of this folder are written in: loops over logical indices, and elements of any dtype as doubles.
#pragma once

#include <functional>

#include "core/spec.h"
#include "dispatch/kernel.h"
#include "kernels/cpu/parallel.h"

namespace plumb::reference {

/// A place in a tensor: one number for each of its logical dimensions.
struct Index {
  int64_t of[kMaxRank] = {};
  int64_t operator[](int d) const { return of[d]; }
  int64_t& operator[](int d) { return of[d]; }
};

inline Index operator+(const Index& a, const Index& b) {
  Index sum;
  for (int d = 0; d < kMaxRank; ++d) sum[d] = a[d] + b[d];
  return sum;
}

/// The index of element i in row-major order.
Index index_at(const Shape& shape, int64_t i);
/// To the next index in row-major order: dividing for every element would take most of a test's time.
inline void advance(const Shape& shape, Index& index) {
  for (int d = shape.rank() - 1; d >= 0; --d) {
    if (++index[d] < shape[d]) return;
    index[d] = 0;
  }
}

/// body(index) for the elements from `begin` to `end`, in row-major order.
template <class Body>
void for_each_index(const Shape& shape, int64_t begin, int64_t end, const Body& body) {
  if (begin >= end) return;
  Index index = index_at(shape, begin);
  for (int64_t i = begin; i < end; ++i, advance(shape, index)) body(index);
}
/// body(index) for every index of `shape`, in row-major order.
template <class Body>
void for_each_index(const Shape& shape, const Body& body) {
  for_each_index(shape, 0, shape.numel(), body);
}
/// The same on all threads, for bodies of which no two touch the same output.
template <class Body>
void parallel_for_each_index(const Shape& shape, const Body& body) {
  cpu::parallel_for(shape.numel(), 256, [&](int64_t begin, int64_t end) { for_each_index(shape, begin, end, body); });
}

/// Whether the reference of an op that computes takes this dtype: f32, f64 or bf16.
bool computes_on(DType t);

/// v as a T, rounded once, to nearest even. (By way of a float, a bfloat16 would be rounded twice.)
template <class T>
T rounded(double v) {
  return static_cast<T>(v);
}
template <>
Bfloat16 rounded(double v);

/// The elements of a tensor by logical index, in any layout.
class Elements {
 public:
  /// Indices are of `rank` dimensions, to which the tensor broadcasts: it is aligned at the right, and where its extent
  /// is 1 the index does not matter.
  Elements(const TensorSpec& spec, int rank);
  explicit Elements(const TensorSpec& spec) : Elements(spec, spec.rank()) {}
  const Shape& shape() const { return spec_.shape; }
  DType dtype() const { return spec_.dtype; }

  /// An element as a double; of i64, rounded.
  double load(const void* data, const Index& i) const;
  /// Rounds once, to nearest even; to an integer as kernels/cast.h says.
  void store(void* data, const Index& i, double v) const;
  /// An element of an integer dtype.
  int64_t load_integer(const void* data, const Index& i) const;
  /// Modulo 2^bits; to a floating dtype, rounds once, to nearest even.
  void store_integer(void* data, const Index& i, int64_t v) const;
  /// An element of another tensor of this dtype, bit for bit.
  void copy(void* data, const Index& i, const Elements& from, const void* from_data, const Index& from_index) const;

 private:
  int64_t offset(const Index& i) const;  // in bytes
  TensorSpec spec_;
  Strides strides_;  // 0 where it broadcasts
  int lead_;
};

/// Offers `run` as the reference of `kind`.
void offer(const char* kind, Candidates&, std::function<void(const Launch&)> run);

}  // namespace plumb::reference
