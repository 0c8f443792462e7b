#include "tests/properties/system_calls.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <span>

// Functions of the program come before glibc's own, for shared libraries too. free stays glibc's, since the memory is.
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}

namespace {

constexpr size_t kDeepest = 24, kKept = 4;
using Frames = std::array<uintptr_t, kDeepest>;

struct Range {
  uintptr_t begin = 0, end = 0;
  bool contains(uintptr_t p) const { return begin <= p && p < end; }
};
// Code of this program, and of the language's runtime, which acts for whoever calls it.
struct Code {
  std::array<Range, 8> program{}, runtime{};
  size_t program_count = 0, runtime_count = 0;
  uintptr_t base = 0;  // of the program, for addr2line
  bool is_program(uintptr_t p) const { return any(std::span(program).first(program_count), p); }
  bool is_runtime(uintptr_t p) const { return any(std::span(runtime).first(runtime_count), p); }
  static bool any(std::span<const Range> ranges, uintptr_t p) {
    return std::any_of(ranges.begin(), ranges.end(), [p](const Range& r) { return r.contains(p); });
  }
};

constinit Code code;
constinit std::atomic<bool> watching{false};
constinit std::atomic<int64_t> by_program{0}, by_libraries{0}, maps{0};
constinit int64_t faults_before = 0;
constinit std::array<Frames, kKept> first_calls{};
constinit thread_local bool inside = false;

int note_module(dl_phdr_info* info, size_t, void*) {
  const std::string_view name = info->dlpi_name;
  const bool is_program = name.empty() && !code.program_count;
  const bool is_runtime = name.find("libstdc++") != name.npos || name.find("libc.so") != name.npos ||
                          name.find("libgcc") != name.npos || name.find("ld-linux") != name.npos;
  for (const auto& segment : std::span(info->dlpi_phdr, info->dlpi_phnum)) {
    if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X)) continue;
    const uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    const Range range{begin, begin + segment.p_memsz};
    if (is_program && code.program_count < code.program.size()) code.program[code.program_count++] = range;
    if (is_runtime && code.runtime_count < code.runtime.size()) code.runtime[code.runtime_count++] = range;
  }
  if (is_program) code.base = info->dlpi_addr;
  return 0;
}

struct Walk {
  Frames frames{};
  size_t count = 0;
};
_Unwind_Reason_Code note_frame(_Unwind_Context* context, void* p) {
  auto& walk = *static_cast<Walk*>(p);
  if (walk.count == kDeepest) return _URC_END_OF_STACK;
  walk.frames[walk.count++] = _Unwind_GetIP(context);
  return _URC_NO_REASON;
}

// A call from `caller` counts for the innermost code on the stack that is not the runtime's.
void note(uintptr_t caller) {
  if (!watching.load(std::memory_order_relaxed) || inside) return;
  inside = true;
  Walk walk;
  _Unwind_Backtrace(note_frame, &walk);
  auto frame = std::find(walk.frames.begin(), walk.frames.end(), caller);
  while (frame != walk.frames.end() && code.is_runtime(*frame)) ++frame;
  if (frame == walk.frames.end() || code.is_program(*frame)) {
    const auto n = static_cast<size_t>(by_program.fetch_add(1));
    if (n < kKept) std::copy(frame, walk.frames.end(), first_calls[n].begin());
  } else {
    ++by_libraries;
  }
  inside = false;
}

int64_t faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt + usage.ru_majflt;
}

template <class F>
F* next(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

#define PLUMB_CALLER reinterpret_cast<uintptr_t>(__builtin_return_address(0))
extern "C" {
void* malloc(size_t bytes) {
  note(PLUMB_CALLER);
  return __libc_malloc(bytes);
}
void* calloc(size_t n, size_t bytes) {
  note(PLUMB_CALLER);
  return __libc_calloc(n, bytes);
}
void* realloc(void* p, size_t bytes) {
  note(PLUMB_CALLER);
  return __libc_realloc(p, bytes);
}
void* memalign(size_t alignment, size_t bytes) {
  note(PLUMB_CALLER);
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  note(PLUMB_CALLER);
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** p, size_t alignment, size_t bytes) {
  note(PLUMB_CALLER);
  *p = __libc_memalign(alignment, bytes);
  return *p ? 0 : ENOMEM;
}
void* mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) {
  static auto* const real = next<decltype(mmap)>("mmap");
  if (watching.load(std::memory_order_relaxed)) ++maps;
  return real(at, bytes, protection, flags, file, offset);
}
int munmap(void* at, size_t bytes) {
  static auto* const real = next<decltype(munmap)>("munmap");
  if (watching.load(std::memory_order_relaxed)) ++maps;
  return real(at, bytes);
}
void* mremap(void* at, size_t bytes, size_t wanted, int flags, ...) {
  static auto* const real = next<decltype(mremap)>("mremap");
  if (watching.load(std::memory_order_relaxed)) ++maps;
  va_list rest;
  va_start(rest, flags);
  void* to = va_arg(rest, void*);  // read by the system only if the flags say so
  va_end(rest);
  return real(at, bytes, wanted, flags, to);
}
void* sbrk(intptr_t by) {
  static auto* const real = next<decltype(sbrk)>("sbrk");
  if (watching.load(std::memory_order_relaxed)) ++maps;
  return real(by);
}
int madvise(void* at, size_t bytes, int advice) {
  static auto* const real = next<decltype(madvise)>("madvise");
  if (watching.load(std::memory_order_relaxed)) ++maps;
  return real(at, bytes, advice);
}
}
#undef PLUMB_CALLER

namespace plumb::test {

SystemCalls system_calls_so_far() { return {by_program, by_libraries, maps, faults() - faults_before, {}}; }

SystemCalls system_calls_of(const std::function<void()>& work) {
  if (!code.program_count) dl_iterate_phdr(note_module, nullptr);
  Walk walk;
  _Unwind_Backtrace(note_frame, &walk);  // the first walk prepares the unwinder
  by_program = by_libraries = maps = 0;
  faults_before = faults();
  watching = true;
  work();
  watching = false;
  SystemCalls c = system_calls_so_far();
  for (size_t i = 0; i < std::min(kKept, static_cast<size_t>(c.allocations)); ++i) {
    c.callers += "\n ";
    for (const uintptr_t p : first_calls[i]) {
      char text[32];
      std::snprintf(text, sizeof text, " %#zx", p - 1 - code.base);
      if (code.is_program(p)) c.callers += text;
    }
  }
  return c;
}

}  // namespace plumb::test
