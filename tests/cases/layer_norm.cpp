// Cases for layer_norm: rows short and long, of one and of several dimensions, with and without parameters.
#include "ops/layer_norm.h"
#include "tests/cases/op_case.h"

namespace plumb::test {
namespace {

enum class With { kBoth, kWeight, kBias, kNeither };

OpVariant variant_of(const Shape& x, int dims, With with = With::kBoth) {
  const bool has_w = with == With::kBoth || with == With::kWeight, has_b = with == With::kBoth || with == With::kBias;
  const Shape normalised(x.extents().subspan(static_cast<size_t>(x.rank() - dims)));
  OpVariant v{.name = message("{} over {}{}{}", x, normalised, has_w ? ", weight" : "", has_b ? ", bias" : ""),
              .inputs = {{.spec = x, .low = -2, .high = 3}},
              .terms = static_cast<double>(normalised.numel())};
  // The gradient of a row of one element is 0, to the bit if products with w are exact.
  const bool is_one = normalised.numel() == 1;
  const double low = is_one ? 1 : 0.5, high = is_one ? 1 : 2;
  if (has_w) v.inputs.push_back({.spec = normalised, .activation = false, .low = low, .high = high, .wide = true});
  if (has_b) v.inputs.push_back({.spec = normalised, .activation = false, .wide = true});
  v.run = [=](std::span<const Tensor> in) {
    if (!has_w && !has_b) return layer_norm(in[0], dims);
    return layer_norm(in[0], has_w ? in[1] : Tensor(), has_b ? in.back() : Tensor());
  };
  return v;
}

const RegisterCase layer_norm_case([] {
  OpCase c{.name = "layer_norm", .tolerance = 32};
  for (const int64_t n : {1, 10, 31, 33, 100, 768, 1023, 1024, 1025}) c.variants.push_back(variant_of({5, n}, 1));
  for (const Shape& x : {Shape{0, 10}, Shape{1, 17}, Shape{1025, 3}, Shape{1025, 33}, Shape{257, 64}, Shape{17},
                         Shape{9, 4096}, Shape{4, 2049}, Shape{10, 4100}, Shape{3, 301}, Shape{3, 515}, Shape{2, 4097},
                         Shape{2, 4104}, Shape{2, 8200}, Shape{3, 2, 5, 2, 3, 7}})
    c.variants.push_back(variant_of(x, 1));
  for (const int dims : {1, 2, 3, 4}) c.variants.push_back(variant_of({3, 10, 5, 7}, dims));
  c.variants.push_back(variant_of({2, 17, 31, 33}, 2));
  c.variants.push_back(variant_of({3, 2, 5, 2, 3}, 2));
  for (const With with : {With::kWeight, With::kBias, With::kNeither}) {
    for (const Shape& x : {Shape{33, 17}, Shape{6, 1028}, Shape{2, 3, 5, 7}})
      c.variants.push_back(variant_of(x, 1, with));
  }
  return c;
}());

}  // namespace
}  // namespace plumb::test
