// Values at addresses that nothing aligns.
#pragma once

#include <cstring>

namespace plumb::detail {

/// The T whose bytes are at `address`.
template <class T>
T load_bytes(const void* address) {
  T v;
  std::memcpy(&v, address, sizeof v);
  return v;
}
/// Puts the bytes of v at `address`.
template <class T>
void store_bytes(void* address, T v) {
  std::memcpy(address, &v, sizeof v);
}

}  // namespace plumb::detail
