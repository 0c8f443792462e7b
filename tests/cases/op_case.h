// One description of an op, for all that is checked of every op.
#pragma once

#include <string>
#include <vector>

#include "tests/support/tensors.h"

namespace plumb::test {

/// How one input is made.
struct CaseInput {
  TensorSpec spec{};            ///< floats take the dtype that is asked for
  bool activation = true;       ///< of rank 4, it takes the layout that is asked for; parameters stay row-major
  double low = -1, high = 1;    ///< range of its numbers
  std::vector<double> kinks{};  ///< values to keep away from by kKinkDistance: the op is not smooth there
  bool differentiable = true;   ///< never for integers
  bool wide = false;            ///< f32 where the dtype that is asked for is narrower, as statistics are
};
inline constexpr double kKinkDistance = 0.125;

/// The op on inputs of certain shapes, with certain attributes.
struct OpVariant {
  std::string name{};
  std::vector<CaseInput> inputs{};
  Function run{};
  double terms = 1;  ///< products or terms that add up to one element of the output
};

struct OpCase {
  std::string name{};
  std::vector<OpVariant> variants{};
  double tolerance = 4;        ///< errors may be this times a bound that grows with sqrt(terms), by the test
  bool exact = false;          ///< on small integers, forward and backward are exact whatever the order of the sums
  bool deterministic = true;   ///< twice the same bits
  bool differentiable = true;  ///< has a gradient
  bool twice_differentiable = true;
  std::vector<DType> dtypes = {DType::kF32, DType::kBf16};  ///< besides f64, which every op has
};

enum class Numbers { kReal, kSmallIntegers };
/// The inputs of a variant: those that are differentiable require a gradient. The same seed gives the same numbers in
/// every layout and, but for rounding, in every dtype.
std::vector<Tensor> make_inputs(const OpVariant& variant, DType dtype, Layout layout, Numbers numbers = Numbers::kReal,
                                uint64_t seed = 1);
/// The layouts that make a difference to a variant: all three if it has an activation of rank 4.
std::vector<Layout> layouts_of(const OpVariant& variant);

/// All cases that are linked in, by name.
const std::vector<OpCase>& op_cases();
/// A static object of this type, in a file of its own in tests/cases, adds a case.
struct RegisterCase {
  explicit RegisterCase(OpCase c);
};

}  // namespace plumb::test
