#include "tests/support/compare.h"

#include <cmath>
#include <cstring>

#include "core/context.h"
#include "kernels/threads.h"

namespace plumb::test {
namespace {

using testing::AssertionFailure;
using testing::AssertionResult;
using testing::AssertionSuccess;

bool same_number(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

}  // namespace

double unit_roundoff(DType t) {
  switch (t) {
    case DType::kF64: return 0x1p-53;
    case DType::kF16: return 0x1p-11;
    case DType::kBf16: return 0x1p-8;
    default: return 0x1p-24;
  }
}

AssertionResult close(std::span<const double> got, std::span<const double> expected, double bound) {
  if (got.size() != expected.size())
    return AssertionFailure() << got.size() << " elements, expected " << expected.size();
  double largest = 0, error = 0, squares = 0, error_squares = 0;
  size_t worst = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (!std::isfinite(expected[i]) || !std::isfinite(got[i])) {
      if (same_number(got[i], expected[i])) continue;
      return AssertionFailure() << "element " << i << " is " << got[i] << ", expected " << expected[i];
    }
    const double d = std::abs(got[i] - expected[i]);
    largest = std::max(largest, std::abs(expected[i]));
    squares += expected[i] * expected[i];
    error_squares += d * d;
    if (d > error) {
      error = d;
      worst = i;
    }
  }
  if (error > bound * largest) {
    return AssertionFailure() << "element " << worst << " is " << got[worst] << ", expected " << expected[worst]
                              << ": off by " << error / largest << " of the largest element, allowed are " << bound;
  }
  if (std::sqrt(error_squares) > bound / 4 * std::sqrt(squares) && got.size() > 16) {
    return AssertionFailure() << "the relative error in the L2 norm is " << std::sqrt(error_squares / squares)
                              << ", allowed are " << bound / 4;
  }
  return AssertionSuccess();
}

AssertionResult close(const Tensor& got, const Tensor& expected, double bound) {
  if (got.shape() != expected.shape()) {
    return AssertionFailure() << "shape " << to_string(got.shape()) << ", expected " << to_string(expected.shape());
  }
  return close(to_doubles(got), to_doubles(expected), bound);
}

AssertionResult bitwise_equal(const Tensor& got, const Tensor& expected) {
  if (!(got.spec() == expected.spec())) {
    return AssertionFailure() << to_string(got.spec()) << ", expected " << to_string(expected.spec());
  }
  if (got.bytes() == 0 || std::memcmp(on_host(got).value->data, on_host(expected).value->data, got.bytes()) == 0)
    return AssertionSuccess();
  const auto difference = equal(got, expected);
  return AssertionFailure() << (difference ? "the bits of a zero or a NaN differ" : difference.message());
}

AssertionResult equal(const Tensor& got, const Tensor& expected) {
  if (got.shape() != expected.shape() || got.dtype() != expected.dtype()) {
    return AssertionFailure() << to_string(got.spec()) << ", expected " << to_string(expected.spec());
  }
  const std::vector<double> a = to_doubles(got), b = to_doubles(expected);
  size_t first = a.size(), count = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (same_number(a[i], b[i])) continue;
    first = std::min(first, i);
    ++count;
  }
  if (!count) return AssertionSuccess();
  return AssertionFailure() << count << " of " << a.size() << " elements differ; element " << first << " is "
                            << a[first] << ", expected " << b[first];
}

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& e) {
    return e.what();
  }
  return kNothingThrown;
}

AssertionResult refused(const std::function<void()>& work, const std::string& part) {
  const std::string sentence = error_of(work);
  if (sentence.find(part) != std::string::npos) return AssertionSuccess();
  return AssertionFailure() << "the error says \"" << sentence << "\", not \"" << part << "\"";
}

void expect_same_with_any_threads(const std::function<std::vector<Tensor>()>& work) {
  const detail::Scoped<Policy> restored(detail::ctx.policy, detail::ctx.policy);
  const int before = threads();
  set_threads(1);
  const std::vector<Tensor> expected = work();
  for (const int n : {2, 3, 5}) {
    set_threads(n);
    const std::vector<Tensor> got = work();
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_TRUE(bitwise_equal(got[i], expected[i])) << n << " threads, result " << i;
  }
  set_threads(before);
}

}  // namespace plumb::test
