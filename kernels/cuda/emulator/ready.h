// The threads of a block that can go on.
#pragma once

#include <array>
#include <cstddef>

namespace plumb::emulator {

inline constexpr int kMostThreads = 1024;  // of a block

/// In the order in which they could. A thread is in it once at most, so that a ring has room for all.
class Ready {
 public:
  bool empty() const { return begin_ == end_; }
  void clear() { begin_ = end_ = 0; }
  void add(int thread) { ring_[end_++ % kMostThreads] = thread; }
  int take_first() { return ring_[begin_++ % kMostThreads]; }
  int take_last() { return ring_[--end_ % kMostThreads]; }

 private:
  std::array<int, kMostThreads> ring_;
  size_t begin_ = 0, end_ = 0;
};

}  // namespace plumb::emulator
