// Loads and stores elements in the type used for arithmetic.
#pragma once

#include "kernels/compute.h"

namespace plumb::cpu {

using detail::Compute;
using detail::dispatch_compute;

template <class T>
Compute<T> load(const T* p) {
  return static_cast<Compute<T>>(*p);
}
template <class T>
void store(T* p, Compute<T> v) {
  *p = static_cast<T>(v);
}

}  // namespace plumb::cpu
