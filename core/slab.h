// One large piece of memory that blocks are cut from.
#pragma once

#include <cstddef>
#include <map>

namespace plumb::detail {

/// Knows which ranges of a piece of memory are free, and never touches the memory itself. Not for several threads at
/// once.
class Slab {
 public:
  Slab(void* memory, size_t bytes) : begin_(static_cast<char*>(memory)), bytes_(bytes), free_{{0, bytes}} {}
  void* memory() const { return begin_; }
  size_t bytes() const { return bytes_; }
  /// A range from the smallest free one that has room, or null. Offsets are whole units of alignment where sizes are.
  void* get(size_t bytes);
  void put(void* block, size_t bytes);
  bool holds(const void* block) const { return block >= begin_ && block < begin_ + bytes_; }
  bool is_unused() const { return free_.size() == 1 && free_.begin()->second == bytes_; }

 private:
  char* begin_;
  size_t bytes_;
  std::map<size_t, size_t> free_;  // offset -> bytes; neighbours are joined
};

}  // namespace plumb::detail
