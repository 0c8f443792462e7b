// The memory of a block's threads: what they share, between zones that nobody may touch.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/cuda/emulator/fibers.h"
#include "kernels/cuda/emulator/unwritten.h"

namespace plumb::emulator {

class BlockMemory {
 public:
  static constexpr size_t kMost = size_t{48} << 10;

  void begin_launch() { retired_.clear(); }
  /// Nothing orders blocks: to ThreadSanitizer each of a launch has memory of its own.
  void begin_block() {
    bytes_ = 0;
    if constexpr (tsan::kLooksOn) {
      retired_.push_back(std::exchange(memory_, std::vector<unsigned char>(kZone + kMost + kZone, kUnwritten)));
      written_ = 0;
    }
  }
  /// The memory of a block, which takes always the same from it; unwritten when the first of its threads asks.
  void* take(size_t bytes) {
    if (!bytes_) {
      std::fill_n(memory_.begin(), written_, kUnwritten);
      written_ = memory_.size();
      bytes_ = bytes;
    }
    return memory_.data() + kZone;
  }
  size_t bytes() const { return bytes_; }
  /// After a block: whether it wrote nowhere else.
  bool is_whole_beside() {
    if (!bytes_) return true;
    const size_t end = kZone + bytes_;
    const bool is_whole =
        is_unwritten(memory_.data(), kZone) && is_unwritten(memory_.data() + end, memory_.size() - end);
    if (is_whole) written_ = end;
    return is_whole;
  }
  /// An address for ThreadSanitizer, by which threads of this block, and no other's, order each other.
  void* order(size_t n) { return memory_.data() + n; }

 private:
  static constexpr size_t kZone = 256;
  std::vector<unsigned char> memory_ = std::vector<unsigned char>(kZone + kMost + kZone);
  size_t bytes_ = 0;
  size_t written_ = kZone + kMost + kZone;           // all that may be, from the begin
  std::vector<std::vector<unsigned char>> retired_;  // of blocks that have ended: their addresses are not to come again
};

}  // namespace plumb::emulator
