#include "dispatch/kernel.h"

namespace plumb {

const char* to_string(Provider p) {
  constexpr const char* kNames[] = {"plumbline", "onednn", "cudnn", "cublaslt", "reference"};
  return kNames[static_cast<size_t>(p)];
}

}  // namespace plumb
