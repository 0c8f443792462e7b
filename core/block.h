// Memory of the allocator that an object owns.
#pragma once

#include <memory>

#include "memory.h"

namespace plumb::detail {

struct GiveBack {
  size_t bytes = 0;
  MemoryClass memory_class = MemoryClass::kWorkspace;
  void operator()(void* data) const { cpu_memory().put(data, bytes, memory_class); }
};
/// A block of the host's allocator, given back at its end.
using Block = std::unique_ptr<void, GiveBack>;

/// Uninitialised memory of `bytes` bytes. Throws Error when the system has no more.
inline Block block_of(size_t bytes, MemoryClass c = MemoryClass::kWorkspace) {
  return Block(cpu_memory().get(bytes, c), {bytes, c});
}

}  // namespace plumb::detail
