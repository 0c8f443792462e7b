#include "core/shape.h"

namespace plumb {

Shape Shape::with(int i, int64_t extent) const {
  if (i < -rank_ || i >= rank_) refuse_dimension(i);
  int64_t e[kMaxRank];
  for (int d = 0; d < rank_; ++d) e[d] = dims_[d];
  e[i < 0 ? i + rank_ : i] = extent;
  return Shape(std::span<const int64_t>(e, static_cast<size_t>(rank_)));
}

std::string to_string(const Shape& s) {
  std::string text = "(";
  for (int i = 0; i < s.rank(); ++i) text += (i ? ", " : "") + std::to_string(s[i]);
  return text + ")";
}

void Shape::refuse() const {
  for (const int64_t e : extents()) PLUMB_CHECK(e >= 0, "shape {} has a negative extent", *this);
  fail("shape {} has more elements than fit into memory addresses", *this);
}

void Shape::refuse_rank(size_t rank) {
  fail("a shape of rank {} was asked for; the largest rank is {}", rank, kMaxRank);
}

void Shape::refuse_dimension(int i) const { fail("shape {} has no dimension {}", *this, i); }

}  // namespace plumb
