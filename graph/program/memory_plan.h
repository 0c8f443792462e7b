// Plans where the values of a program lie in its arena.
#pragma once

#include <cstddef>
#include <vector>

namespace plumb::detail {

/// A value's lifetime: from the step that makes it to the last step that reads it.
struct Lifetime {
  size_t bytes;
  int first, last;
  size_t offset = 0;  ///< set by plan_memory
};
/// Assigns offsets; values whose lifetimes do not overlap may share memory. Returns the total bytes.
size_t plan_memory(std::vector<Lifetime>& values);

}  // namespace plumb::detail
