// What memory is full of until somebody writes to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace plumb::emulator {

/// As floats these are NaNs: what reads before it writes is seen.
inline constexpr unsigned char kUnwritten = 0xff;

/// Whether nobody has written there. All of it is read, without a way out: such a loop the compiler makes wide.
inline bool is_unwritten(const void* begin, size_t bytes) {
  const auto* p = static_cast<const unsigned char*>(begin);
  uint64_t all = ~uint64_t{0}, word = 0;
  for (; bytes >= sizeof word; p += sizeof word, bytes -= sizeof word) {
    std::memcpy(&word, p, sizeof word);
    all &= word;
  }
  for (; bytes > 0; ++p, --bytes) all &= *p | ~uint64_t{kUnwritten};
  return all == ~uint64_t{0};
}

}  // namespace plumb::emulator
