// main() of every test executable, and what sanitizers must know.
#include <gtest/gtest.h>

#include <cstdlib>

#include "kernels/cpu/nontemporal.h"

#ifdef __SANITIZE_ADDRESS__
// Tests of the out-of-memory error ask for more than there is and expect a null pointer.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
#endif
#ifdef __SANITIZE_THREAD__
// libgomp and oneDNN are not instrumented: only what our own code does to our own memory is watched.
extern "C" const char* __tsan_default_options() {
  return "allocator_may_return_null=1:ignore_noninstrumented_modules=1:halt_on_error=1";
}
#endif

int main(int argc, char** argv) {
  setenv("PLUMB_CACHE", "off", 0);          // what a test measures must not decide what a user runs
  plumb::cpu::nontemporal_bytes = 1 << 20;  // results past it take seconds to check otherwise
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
