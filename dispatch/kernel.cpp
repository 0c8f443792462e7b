#include "dispatch/kernel.h"

namespace plumb {

const char* to_string(Provider p) {
  switch (p) {
    case Provider::kPlumbline: return "plumbline";
    case Provider::kOneDnn: return "onednn";
    case Provider::kCudnn: return "cudnn";
    case Provider::kCublasLt: return "cublaslt";
    case Provider::kReference: return "reference";
  }
  return "plumbline";
}

}  // namespace plumb
