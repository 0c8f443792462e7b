// Reads and writes of values at unaligned addresses.
#pragma once

#include <cstring>

namespace plumb::detail {

/// Reads a T from the bytes at `address`.
template <class T>
T load_bytes(const void* address) {
  T v;
  std::memcpy(&v, address, sizeof v);
  return v;
}
/// Writes the bytes of v to `address`.
template <class T>
void store_bytes(void* address, T v) {
  std::memcpy(address, &v, sizeof v);
}

}  // namespace plumb::detail
