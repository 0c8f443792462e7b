// Loading and storing elements in the type that arithmetic is done in.
#pragma once

#include "core/dtype.h"

namespace plumb::cpu {

/// f32 for the 16-bit floats, the type itself otherwise.
template <class T>
struct ComputeOf {
  using Type = T;
};
template <>
struct ComputeOf<Bfloat16> {
  using Type = float;
};
template <>
struct ComputeOf<Float16> {
  using Type = float;
};
template <class T>
using Compute = typename ComputeOf<T>::Type;

template <class T>
Compute<T> load(const T* p) {
  return static_cast<Compute<T>>(*p);
}
template <class T>
void store(T* p, Compute<T> v) {
  *p = static_cast<T>(v);
}

/// Calls f.template operator()<T>() for f32, f64 and bf16, the dtypes that floating kernels compute on; false
/// otherwise.
template <class F>
bool dispatch_compute(DType t, F&& f) {
  switch (t) {
    case DType::kF32: f.template operator()<float>(); return true;
    case DType::kF64: f.template operator()<double>(); return true;
    case DType::kBf16: f.template operator()<Bfloat16>(); return true;
    default: return false;
  }
}

}  // namespace plumb::cpu
