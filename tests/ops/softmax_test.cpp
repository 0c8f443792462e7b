#include "ops/softmax.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "dispatch/policy.h"
#include "ops/grad.h"
#include "ops/slice.h"
#include "tests/support/compare.h"
#include "tests/support/kernel_check.h"

namespace plumb::test {
namespace {

Tensor either(const Tensor& x, int dim, bool log) { return log ? log_softmax(x, dim) : softmax(x, dim); }

/// By the definition, in double: row-major elements in, row-major elements out.
std::vector<double> by_definition(const Tensor& x, int dim, bool log) {
  std::vector<double> v = to_doubles(x);
  const auto extent = static_cast<size_t>(x.shape()[dim]);
  size_t inner = 1;
  for (int d = dim + 1; d < x.rank(); ++d) inner *= static_cast<size_t>(x.shape()[d]);
  for (size_t outer = 0; outer < v.size(); outer += extent * inner) {
    for (size_t i = 0; i < inner; ++i) {
      double* const first = v.data() + outer + i;
      double largest = -std::numeric_limits<double>::infinity();
      long double sum = 0;
      for (size_t k = 0; k < extent; ++k) largest = std::max(largest, first[k * inner]);
      for (size_t k = 0; k < extent; ++k) sum += std::exp(first[k * inner] - largest);
      for (size_t k = 0; k < extent; ++k) {
        const double d = first[k * inner] - largest;
        first[k * inner] = static_cast<double>(log ? d - std::log(sum) : std::exp(d) / sum);
      }
    }
  }
  return v;
}

struct Case {
  TensorSpec x;
  int dim;
};
/// Every size of remainder, every place of the dimension, every layout.
std::vector<Case> cases() {
  std::vector<Case> all;
  for (const int64_t n : {1, 3, 17, 33, 129, 1000, 5000}) {
    all.push_back({Shape{n}, 0});
    all.push_back({Shape{3, n}, 1});
    all.push_back({Shape{n, 3}, 0});
    all.push_back({Shape{5, n > 200 ? 7 : n, 131}, 1});
  }
  for (const Layout layout : kPublicLayouts) {
    for (int dim = 0; dim < 4; ++dim) all.push_back({{Shape{3, 17, 5, 7}, DType::kF32, layout}, dim});
  }
  all.push_back({Shape{0, 5}, 1});
  all.push_back({Shape{5, 0}, 1});
  return all;
}

TEST(Softmax, MatchesItsDefinition) {
  for (const Case& c : cases()) {
    for (const bool log : {false, true}) {
      for (const DType dtype : {DType::kF64, DType::kF32, DType::kBf16}) {
        SCOPED_TRACE(to_string(c.x.with(dtype)) + message(" dim {} log {}", c.dim, log));
        const Tensor x = random_tensor(c.x.with(dtype), 1, -5, 5);

        const Tensor y = either(x, c.dim, log);

        EXPECT_EQ(y.spec(), x.spec());
        EXPECT_TRUE(close(to_doubles(y), by_definition(x, c.dim, log), 16 * unit_roundoff(dtype)));
      }
    }
  }
}

TEST(Softmax, KernelsMatchF64AndStayInTheirMemory) {
  KernelCheck check(8);
  for (const Case& c : cases()) {
    for (const DType dtype : {DType::kF32, DType::kBf16}) {
      for (const bool log : {false, true}) {
        const Tensor x = random_tensor(c.x.with(dtype), 1, -3, 3).require_grad();
        const Tensor y = either(x, c.dim, log);
        grad(y, {x}, random_tensor(y.spec(), 2));
      }
    }
  }
  std::set<std::string> expected{"softmax_backward:loop", "softmax_backward:reference", "softmax_forward:loop",
                                 "softmax_forward:onednn", "softmax_forward:reference"};
  if (has_avx512()) expected.insert("softmax_backward:onednn");
  EXPECT_EQ(check.checked(), expected);
}

// Along columns, along rows side by side and one by one, and along what no buffer holds.
TEST(Softmax, ResultsThatAreStreamedPastTheCachesAreTheSame) {
  const auto pieces = [](int64_t elements) { return pieces_past_caches(elements * 4); };
  const Case streamed[] = {{Shape{pieces(33 * 131), 33, 131}, 1},
                           {Shape{1, 64, pieces(64) + 5}, 1},
                           {Shape{2, 600, pieces(2 * 600) + 5}, 1},
                           {Shape{pieces(21 * 4), 21, 4}, 1},  // of less than a line
                           {Shape{pieces(40) + 21, 40}, 1},
                           {Shape{pieces(1000) + 1, 1000}, 1},
                           {Shape{pieces(9001) + 1, 9001}, 1},
                           {{Shape{2 * pieces(33 * 131), 33, 131}, DType::kBf16}, 1},
                           {{Shape{2 * pieces(40) + 21, 40}, DType::kBf16}, 1}};
  KernelCheck check(8);
  bool log = false;
  for (const Case& c : streamed) {
    const Tensor x = random_tensor(c.x, 1, -3, 3).require_grad();
    const Tensor y = either(x, c.dim, log);
    grad(y, {x}, random_tensor(y.spec(), 2));
    log = !log;
  }
}

TEST(Softmax, ABackwardThatIsRecordedGivesTheSameGradient) {
  for (const bool log : {false, true}) {
    const Tensor x = random_tensor(Shape{7, 33}, 1).require_grad(), dy = random_tensor(Shape{7, 33}, 2);

    const Tensor fused = grad(either(x, 1, log), {x}, dy)[0];
    const Tensor recorded = grad(either(x, 1, log), {x}, dy, {.create_graph = true})[0];

    EXPECT_TRUE(bitwise_equal(recorded.detached(), fused));
  }
}

TEST(Softmax, IsStableAndKeepsRowsApart) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float nan = std::nanf("");
  const Tensor x = Tensor::from({1e4f, 1e4f, -1e4f,                   //
                                 -1e4f, -1e4f, -1e4f,                 //
                                 0.0f, -kInfinity, 0.0f,              //
                                 -kInfinity, -kInfinity, -kInfinity,  //
                                 1.0f, nan, 1.0f},
                                Shape{5, 3});
  const double third = 1.0 / 3, none = std::nan("");
  const std::vector<double> expected = {0.5, 0.5,  0,    third, third, third, 0.5, 0,
                                        0.5, none, none, none,  none,  none,  none};

  for (const char* algorithm : {"loop", "onednn"}) {
    const PolicyScope policy({.algorithm = algorithm_id(algorithm)});
    EXPECT_TRUE(close(to_doubles(softmax(x)), expected, 1e-7)) << algorithm;
    const Tensor rows = slice(x, {0, 0}, {3, 3});  // nothing that oneDNN leaves to ours
    const std::vector<double> first(expected.begin(), expected.begin() + 9);
    EXPECT_TRUE(close(to_doubles(softmax(rows)), first, 1e-7)) << algorithm << " with minus infinity";
    const Tensor lowest = slice(x, {3, 0}, {1, 3});
    for (const double v : to_doubles(softmax(lowest))) EXPECT_TRUE(std::isnan(v)) << algorithm;
  }
  const std::vector<double> logs = to_doubles(log_softmax(x));
  EXPECT_NEAR(logs[0], -std::numbers::ln2, 1e-7);
  EXPECT_NEAR(logs[2], -2e4 - std::numbers::ln2, 1e-3);
  EXPECT_EQ(logs[7], -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(logs[14]));
}

TEST(Softmax, NanStaysInGradients) {
  const Tensor x = Tensor::from({1.0f, std::nanf(""), 1.0f, 1.0f, 2.0f, 3.0f}, Shape{2, 3}).require_grad();
  for (const char* algorithm : {"loop", "onednn"}) {
    const PolicyScope policy({.algorithm = algorithm_id(algorithm)});
    for (const bool log : {false, true}) {
      const std::vector<double> dx = to_doubles(grad(either(x, 1, log), {x}, random_tensor(Shape{2, 3}, 1))[0]);
      for (size_t i = 0; i < 6; ++i) EXPECT_EQ(std::isnan(dx[i]), i < 3) << algorithm << " " << log << " " << i;
    }
  }
}

TEST(Softmax, DoesNotDependOnTheNumberOfThreads) {
  const Tensor x = random_tensor(Shape{301, 517}, 1);
  for (const int dim : {0, 1}) expect_same_with_any_threads([&] { return std::vector{softmax(x, dim)}; });
}

}  // namespace
}  // namespace plumb::test
