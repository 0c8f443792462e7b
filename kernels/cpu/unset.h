// Room on the stack.
#pragma once

#include <cstddef>
#include <cstdint>

namespace plumb::cpu {

/// Room for n elements that nothing is written to before they are: the constructor of a Bfloat16 would write a zero to
/// each.
template <class T, int64_t n>
class Unset {
 public:
  T* data() { return reinterpret_cast<T*>(bytes_); }

 private:
  alignas(64) std::byte bytes_[static_cast<size_t>(n) * sizeof(T)];
};

}  // namespace plumb::cpu
