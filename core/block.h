// A block of an allocator's memory with one owner.
#pragma once

#include <memory>

#include "runtime.h"

namespace plumb::detail {

struct GiveBack {
  size_t bytes = 0;
  MemoryClass memory_class = MemoryClass::kWorkspace;
  Allocator* memory = nullptr;
  void operator()(void* data) const { memory->put(data, bytes, memory_class); }
};
/// A block of memory that is returned to its allocator when the pointer is destroyed.
using Block = std::unique_ptr<void, GiveBack>;

/// Uninitialised memory of `bytes` bytes. Throws Error when the device has no more.
inline Block block_of(size_t bytes, MemoryClass c = MemoryClass::kWorkspace, Device d = {}) {
  Allocator& memory = memory_of(d);
  return Block(memory.get(bytes, c), {bytes, c, &memory});
}

}  // namespace plumb::detail
