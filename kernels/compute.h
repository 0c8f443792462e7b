// For each dtype: the type that kernels of every device compute in, and the unsigned integer of the same size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "../core/dtype.h"

namespace plumb::detail {

/// f32 for the 16-bit floats, the type itself otherwise.
template <class T>
using Compute = std::conditional_t<std::is_arithmetic_v<T>, T, float>;

/// Calls f.template operator()<T>() if t is f32, f64 or bf16, the dtypes that floating-point kernels compute on;
/// otherwise returns false.
template <class F>
bool dispatch_compute(DType t, F&& f) {
  switch (t) {
    case DType::kF32: f.template operator()<float>(); return true;
    case DType::kF64: f.template operator()<double>(); return true;
    case DType::kBf16: f.template operator()<Bfloat16>(); return true;
    default: return false;
  }
}

/// The same for the integers as well.
template <class F>
bool dispatch_numbers(DType t, F&& f) {
  switch (t) {
    case DType::kI32: f.template operator()<int32_t>(); return true;
    case DType::kI64: f.template operator()<int64_t>(); return true;
    case DType::kU8: f.template operator()<uint8_t>(); return true;
    default: return dispatch_compute(t, f);
  }
}

/// Calls f.template operator()<T>() with T the unsigned integer of `bytes` bytes, the size of some dtype.
template <class F>
decltype(auto) dispatch_size(size_t bytes, F&& f) {
  switch (bytes) {
    case 1: return f.template operator()<uint8_t>();
    case 2: return f.template operator()<uint16_t>();
    case 4: return f.template operator()<uint32_t>();
    default: return f.template operator()<uint64_t>();
  }
}

}  // namespace plumb::detail
