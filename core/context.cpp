#include "core/context.h"

#include <atomic>

#include "core/runtime.h"

namespace plumb {
namespace {

constinit std::atomic<void (*)(void*)> front_deleter{nullptr};  // every thread that has a table sets the same

void release_workspace() {
  if (detail::ctx.workspace)
    cpu_memory().put(std::exchange(detail::ctx.workspace, nullptr), detail::ctx.workspace_bytes,
                     MemoryClass::kWorkspace);
  detail::ctx.workspace_bytes = 0;
}

struct ThreadEnd {
  bool watched = false;
  ~ThreadEnd() {
    if (detail::ctx.front) front_deleter.load(std::memory_order_relaxed)(std::exchange(detail::ctx.front, nullptr));
    release_workspace();
    detail::ctx.pool.drain();
  }
};
thread_local ThreadEnd thread_end;

}  // namespace

namespace detail {

void watch_thread_end(void (*release_front)(void*)) {
  if (release_front) front_deleter.store(release_front, std::memory_order_relaxed);
  thread_end.watched = true;
}

void grow_workspace(size_t bytes) {
  watch_thread_end();
  release_workspace();
  ctx.workspace = cpu_memory().get(bytes, MemoryClass::kWorkspace);
  ctx.workspace_bytes = bytes;
}

void release_idle_memory(Device d) {
  if (!d.is_cpu()) return runtime_of(d).release_idle_memory();
  release_workspace();
  cpu_memory().trim();
}

}  // namespace detail
}  // namespace plumb
