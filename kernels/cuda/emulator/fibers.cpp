#include "kernels/cuda/emulator/fibers.h"

#include <sys/mman.h>

#include "core/error.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

// Saves what a call must keep, and goes on where `to` was left.
extern "C" void plumb_pass_to_stack(void** from, void* to);
asm(R"(
.text
.globl plumb_pass_to_stack
.type plumb_pass_to_stack,@function
plumb_pass_to_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size plumb_pass_to_stack,.-plumb_pass_to_stack
)");

namespace plumb::emulator {
namespace {
constexpr size_t kStackBytes = size_t{256} << 10, kPage = 4096;
}  // namespace

Fiber* Fiber::last_ = nullptr;

Fiber::Fiber(void (*begin)()) {
  void* const memory = mmap(nullptr, kStackBytes + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  PLUMB_CHECK(memory != MAP_FAILED && mprotect(memory, kPage, PROT_NONE) == 0,
              "emulator: there is no memory for the stack of a thread");
  bottom_ = static_cast<char*>(memory) + kPage;
  bytes_ = kStackBytes;
  tsan::take_no_notice_of(memory, kPage + kStackBytes);
  auto** top = reinterpret_cast<void**>(static_cast<char*>(memory) + kPage + kStackBytes - 64);
  *--top = nullptr;  // where begin would return to; keeps the stack aligned
  *--top = reinterpret_cast<void*>(begin);
  for (int i = 0; i < 6; ++i) *--top = nullptr;  // the registers
  sp_ = top;
}

#ifdef __SANITIZE_ADDRESS__
void Fiber::pass_to(Fiber& to) {
  void* fake = nullptr;
  last_ = this;
  __sanitizer_start_switch_fiber(&fake, to.bottom_, to.bytes_);
  plumb_pass_to_stack(&sp_, to.sp_);
  __sanitizer_finish_switch_fiber(fake, &last_->bottom_, &last_->bytes_);
}
void Fiber::arrived() { __sanitizer_finish_switch_fiber(nullptr, &last_->bottom_, &last_->bytes_); }
#else
void Fiber::pass_to(Fiber& to) { plumb_pass_to_stack(&sp_, to.sp_); }
void Fiber::arrived() {}
#endif

}  // namespace plumb::emulator

#ifdef PLUMB_SANITIZED_THREADS
extern "C" {
void* __tsan_get_current_fiber(void);
void* __tsan_create_fiber(unsigned flags);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
void __tsan_acquire(void*);
void __tsan_release(void*);
void AnnotateBenignRaceSized(const char* file, int line, void* from, size_t bytes, const char* why);
}
namespace plumb::emulator::tsan {
void* current() { return __tsan_get_current_fiber(); }
void* create() { return __tsan_create_fiber(0); }
void become(void* fiber) {
  constexpr unsigned kOrdersNothing = 1;
  __tsan_switch_to_fiber(fiber, kOrdersNothing);
}
void acquire(void* at) { __tsan_acquire(at); }
void release(void* at) { __tsan_release(at); }
void take_no_notice_of(void* from, size_t bytes) {
  AnnotateBenignRaceSized(__FILE__, __LINE__, from, bytes, "a stack that one thread has after another");
}
}  // namespace plumb::emulator::tsan
#endif
