// main() of every test executable, and the options of the sanitizers.
#include <gtest/gtest.h>

#include <cstdlib>

#include "kernels/cpu/nontemporal.h"

#ifdef __SANITIZE_ADDRESS__
// Tests of the out-of-memory error request more memory than there is and expect a null pointer.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
#endif
#ifdef __SANITIZE_THREAD__
// libgomp and oneDNN are not instrumented: check only what our own code does to our own memory.
extern "C" const char* __tsan_default_options() {
  return "allocator_may_return_null=1:ignore_noninstrumented_modules=1:halt_on_error=1";
}
#endif

int main(int argc, char** argv) {
  plumb::cpu::nontemporal_bytes = 1 << 20;  // larger thresholds need larger results, which take seconds to check
  testing::InitGoogleTest(&argc, argv);
  // A test's measurements must not decide what a user runs, nor a user's what a test sees. Tests that are disabled are
  // what another test starts, which names a folder.
  setenv("PLUMB_CACHE", "off", GTEST_FLAG_GET(also_run_disabled_tests) ? 0 : 1);
  return RUN_ALL_TESTS();
}
