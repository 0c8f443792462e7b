#include "kernels/cpu/cache.h"

#include <unistd.h>

namespace plumb::cpu {

int64_t l2_bytes() {
  static const int64_t bytes = [] {
    const long known = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return known > 0 ? int64_t{known} : int64_t{512} << 10;
  }();
  return bytes;
}

}  // namespace plumb::cpu
