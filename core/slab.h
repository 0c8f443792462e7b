// One large piece of memory, from which blocks are cut.
#pragma once

#include <cstddef>
#include <map>

namespace plumb::detail {

/// Tracks which ranges of a piece of memory are free; never touches the memory itself. Not thread-safe.
class Slab {
 public:
  Slab(void* memory, size_t bytes) : begin_(static_cast<char*>(memory)), bytes_(bytes), free_{{0, bytes}} {}
  size_t bytes() const { return bytes_; }
  /// Takes a range from the smallest free one that is large enough, or returns null. Offsets stay aligned if sizes are.
  void* get(size_t bytes);
  void put(void* block, size_t bytes) noexcept;
  bool holds(const void* block) const { return block >= begin_ && block < begin_ + bytes_; }

 private:
  char* begin_;
  size_t bytes_;
  std::map<size_t, size_t> free_;  // offset -> bytes; neighbouring ranges are merged
};

}  // namespace plumb::detail
