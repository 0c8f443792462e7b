// Where the values of a program lie in its arena.
#pragma once

#include <cstddef>
#include <vector>

namespace plumb::detail {

/// A value's place in time: from the step that makes it to the last that reads it.
struct Lifetime {
  size_t bytes;
  int first, last;
  size_t offset = 0;  ///< found by plan_memory
};
/// Gives values whose lifetimes do not meet the same memory. Returns the bytes of the whole.
size_t plan_memory(std::vector<Lifetime>& values);

}  // namespace plumb::detail
