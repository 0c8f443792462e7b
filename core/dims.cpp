#include "core/dims.h"

#include <algorithm>

namespace plumb {

Dims::Dims(std::span<const int> dims) : size_(dims.size()) {
  PLUMB_CHECK(dims.size() <= kMaxRank, "{} dimensions were named; a tensor has at most {}", dims.size(), kMaxRank);
  std::ranges::copy(dims, dims_);
}

}  // namespace plumb
