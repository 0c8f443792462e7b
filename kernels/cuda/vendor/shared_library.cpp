#include "kernels/cuda/vendor/shared_library.h"

#include <dlfcn.h>

#include "core/error.h"

namespace plumb::cuda {

SharedLibrary::SharedLibrary(const char* file, const char* name) : file_(file) {
  handle_ = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  const std::string why = handle_ ? "" : dlerror();
  if (!handle_) handle_ = dlopen((std::string(PLUMB_CUDA_FOLDER "/") + file).c_str(), RTLD_NOW | RTLD_LOCAL);
  PLUMB_CHECK(handle_, "{} cannot be opened ({}); install it, or name its folder in LD_LIBRARY_PATH", name, why);
}

void* SharedLibrary::symbol(const char* name) const {
  void* const address = dlsym(handle_, name);
  PLUMB_CHECK(address, "{} has no function {}: it is older than what this program was built with", file_, name);
  return address;
}

}  // namespace plumb::cuda
