// Memory between two zones that nobody may touch.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace plumb::test {

/// `bytes` bytes on a 64-byte boundary that is no 128-byte boundary, which is all that kernels may rely on. The zones
/// are filled with NaNs of every dtype: what reads them gives NaN, what writes them is seen.
class Guarded {
 public:
  explicit Guarded(size_t bytes)
      : bytes_(bytes), size_((bytes + 2 * kZone + 255) / 256 * 256), block_(std::aligned_alloc(256, size_)) {
    std::memset(block_.get(), 0xff, size_);
  }
  Guarded(const void* from, size_t bytes) : Guarded(bytes) {
    if (bytes) std::memcpy(data(), from, bytes);
  }
  void* data() const { return begin() + kZone; }
  bool intact() const {
    const auto untouched = [](const unsigned char* from, const unsigned char* to) {
      return std::all_of(from, to, [](unsigned char b) { return b == 0xff; });
    };
    return untouched(begin(), begin() + kZone) && untouched(begin() + kZone + bytes_, begin() + size_);
  }

 private:
  static constexpr size_t kZone = 512 + 64;
  unsigned char* begin() const { return static_cast<unsigned char*>(block_.get()); }
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  size_t bytes_, size_;
  std::unique_ptr<void, Free> block_;
};

}  // namespace plumb::test
