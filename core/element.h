// One element of any dtype.
#pragma once

#include "dtype.h"

namespace plumb::detail {

/// Element i of an array as a double; i64 values beyond 2^53 are rounded.
inline double element_of(const void* data, DType dtype, int64_t i) {
  return dispatch_dtype(dtype, [&]<class T>() {
    const T v = static_cast<const T*>(data)[i];
    if constexpr (std::is_arithmetic_v<T>) {
      return static_cast<double>(v);
    } else {
      return static_cast<double>(static_cast<float>(v));
    }
  });
}

}  // namespace plumb::detail
