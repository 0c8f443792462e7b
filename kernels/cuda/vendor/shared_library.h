// Libraries of the CUDA toolkit, opened at first use: a program that has our kernels runs on a machine without them.
#pragma once

#include <string>

namespace plumb::cuda {

/// A shared library, open for the rest of the process.
class SharedLibrary {
 public:
  /// "libcudnn.so.9", whose name for users is "cuDNN 9". Looked for where the loader looks, then in the toolkit that
  /// this program was built with. Throws a sentence when it cannot be opened.
  SharedLibrary(const char* file, const char* name);
  /// The address of a function; throws a sentence when the library does not have it.
  void* symbol(const char* name) const;

 private:
  void* handle_ = nullptr;
  const char* file_;
};

}  // namespace plumb::cuda
