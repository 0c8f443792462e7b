// Comparisons that report where and by how much two tensors differ.
#pragma once

#include <gtest/gtest.h>

#include "tests/support/tensors.h"

namespace plumb::test {

/// Half the distance between neighbouring numbers at 1: the rounding error of one operation (2^-24 for f32).
double unit_roundoff(DType t);

/// Requires every |got - expected| <= bound max |expected|, and the same in the L2 norm with a quarter of the bound:
/// this finds both one wrong element and a slight error everywhere. NaN and infinities must be the same in both.
testing::AssertionResult close(std::span<const double> got, std::span<const double> expected, double bound);
/// The same for tensors of one shape, whatever their dtypes and layouts.
testing::AssertionResult close(const Tensor& got, const Tensor& expected, double bound);

/// The same spec and the same bytes.
testing::AssertionResult bitwise_equal(const Tensor& got, const Tensor& expected);
/// The same shape, dtype and numbers, whatever the layouts.
testing::AssertionResult equal(const Tensor& got, const Tensor& expected);

/// The message of the Error that `work` throws, or kNothingThrown.
inline constexpr char kNothingThrown[] = "nothing was thrown";
std::string error_of(const std::function<void()>& work);
/// Requires `work` to throw an Error whose message contains `part`.
testing::AssertionResult refused(const std::function<void()>& work, const std::string& part);

/// body(spec) for every shape and dtype, in every layout that tensors of the shape's rank have.
template <class Body>
void for_each_spec(std::span<const Shape> shapes, std::initializer_list<DType> dtypes, const Body& body) {
  for (const Shape& s : shapes) {
    for (const Layout layout : kPublicLayouts) {
      if (s.rank() != 4 && layout != Layout::kNchw) continue;
      for (const DType dtype : dtypes) {
        SCOPED_TRACE(to_string(TensorSpec(s, dtype, layout)));
        body(TensorSpec(s, dtype, layout));
      }
    }
  }
}

/// Requires that `work` gives the same bits with two, three and five threads as with one.
void expect_same_with_any_threads(const std::function<std::vector<Tensor>()>& work);

}  // namespace plumb::test
