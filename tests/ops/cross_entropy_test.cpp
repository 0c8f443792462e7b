#include "ops/cross_entropy.h"

#include <cmath>

#include "core/random.h"
#include "ops/grad.h"
#include "ops/mse.h"
#include "tests/support/compare.h"
#include "tests/support/kernel_check.h"

namespace plumb::test {
namespace {

constexpr LossReduction kReductions[] = {LossReduction::kMean, LossReduction::kSum, LossReduction::kNone};

Tensor labels_for(int64_t rows, int64_t classes, uint64_t seed = 5) {
  Tensor t = Tensor::empty(TensorSpec(Shape{rows}, DType::kI64));
  detail::fill_uniform(t.value->data, DType::kI64, rows, 0, static_cast<double>(classes - 1), seed);
  return t;
}

/// log sum e^x - x[label] for each row, in double.
std::vector<double> losses_by_definition(const Tensor& logits, const Tensor& labels) {
  const std::vector<double> x = to_doubles(logits);
  const auto classes = static_cast<size_t>(logits.shape()[1]);
  std::vector<double> losses;
  for (const int64_t label : labels.data<int64_t>()) {
    const double* row = x.data() + losses.size() * classes;
    const double largest = *std::max_element(row, row + classes);
    double sum = 0;
    for (size_t j = 0; j < classes; ++j) sum += std::exp(row[j] - largest);
    losses.push_back(std::log(sum) - (row[label] - largest));
  }
  return losses;
}

std::vector<double> reduced(std::vector<double> losses, LossReduction reduction) {
  if (reduction == LossReduction::kNone) return losses;
  double total = 0;
  for (const double v : losses) total += v;
  return {reduction == LossReduction::kMean ? total / static_cast<double>(losses.size()) : total};
}

TEST(CrossEntropy, MatchesItsDefinition) {
  for (const Shape& s : {Shape{1, 1}, Shape{3, 10}, Shape{17, 33}, Shape{18, 250}, Shape{33, 1000}, Shape{1025, 3}}) {
    for (const DType dtype : {DType::kF64, DType::kF32, DType::kBf16}) {
      for (const LossReduction reduction : kReductions) {
        SCOPED_TRACE(message("{} {} reduction {}", s, dtype, static_cast<int>(reduction)));
        const Tensor x = random_tensor({s, dtype}, 1, -4, 4), labels = labels_for(s[0], s[1]);

        const Tensor loss = cross_entropy(x, labels, reduction);

        EXPECT_EQ(loss.dtype(), dtype == DType::kF64 ? DType::kF64 : DType::kF32);
        EXPECT_EQ(loss.shape(), reduction == LossReduction::kNone ? Shape{s[0]} : Shape{});
        EXPECT_TRUE(close(to_doubles(loss), reduced(losses_by_definition(x, labels), reduction),
                          8 * unit_roundoff(loss.dtype())));
      }
    }
  }
}

TEST(CrossEntropy, KernelsMatchF64AndStayInTheirMemory) {
  KernelCheck check(8);
  for (const Shape& s : {Shape{1, 1}, Shape{3, 10}, Shape{17, 33}, Shape{18, 256}, Shape{129, 1000}}) {
    for (const DType dtype : {DType::kF32, DType::kBf16}) {
      for (const LossReduction reduction : kReductions) {
        const Tensor x = random_tensor({s, dtype}, 1, -4, 4).require_grad();
        const Tensor loss = cross_entropy(x, labels_for(s[0], s[1]), reduction);
        grad(loss, {x}, random_tensor(loss.spec(), 2));
      }
    }
  }
  EXPECT_EQ(check.checked(), (std::set<std::string>{"cross_entropy_backward:loop", "cross_entropy_backward:reference",
                                                    "cross_entropy_forward:loop", "cross_entropy_forward:reference"}));
}

TEST(CrossEntropy, SecondDerivativesOfBf16LogitsExist) {
  const Tensor x = random_tensor({Shape{3, 5}, DType::kBf16}, 1).require_grad();
  const Tensor dx = grad(cross_entropy(x, labels_for(3, 5)), {x}, {.create_graph = true})[0];

  const Tensor second = grad(dx, {x}, random_tensor(dx.spec(), 2))[0];

  EXPECT_EQ(second.spec(), x.spec());
}

TEST(CrossEntropy, IsStableForLargeLogits) {
  const Tensor x = Tensor::from({1e4f, 1e4f + 1, -1e4f, -1e4f, -1e4f, 3e4f}, Shape{2, 3}).require_grad();
  const Tensor labels = Tensor::from({int64_t{0}, int64_t{0}}, Shape{2});
  const double p = 1 / (1 + std::exp(1.0));

  const Tensor loss = cross_entropy(x, labels, LossReduction::kNone);
  const Tensor dx = grad(loss, {x}, Tensor::from({1.0f, 1.0f}, Shape{2}))[0];

  EXPECT_TRUE(close(to_doubles(loss), std::vector<double>{-std::log(p), 4e4}, 1e-7));
  EXPECT_TRUE(close(to_doubles(dx), std::vector<double>{p - 1, 1 - p, 0, -1, 0, 1}, 1e-6));
}

TEST(CrossEntropy, DoesNotDependOnTheNumberOfThreads) {
  const Tensor x = random_tensor(Shape{1003, 129}, 1, -4, 4).require_grad(), labels = labels_for(1003, 129);
  expect_same_with_any_threads([&] {
    const Tensor loss = cross_entropy(x, labels);
    return std::vector<Tensor>{loss.detached(), grad(loss, {x})[0]};
  });
}

TEST(CrossEntropy, RefusesALabelOutOfRange) {
  const Tensor x = random_tensor(Shape{700, 100}, 1).require_grad();
  for (const int64_t bad : {int64_t{-1}, int64_t{100}, int64_t{1} << 40}) {
    Tensor labels = labels_for(700, 100);
    labels.mutable_data<int64_t>()[613] = bad;
    EXPECT_TRUE(refused([&] { cross_entropy(x, labels); },
                        message("the label of row 613 is {}; with 100 classes labels are 0 to 99", bad)));
  }
}

TEST(CrossEntropy, AnEmptyBatchHasASum) {
  const Tensor x = random_tensor(Shape{0, 5}, 1).require_grad();
  const Tensor loss = cross_entropy(x, labels_for(0, 5), LossReduction::kSum);
  EXPECT_EQ(loss.item(), 0);
  EXPECT_EQ(grad(loss, {x})[0].spec(), x.spec());
}

TEST(Mse, MatchesItsDefinition) {
  for (const Layout layout : kPublicLayouts) {
    for (const DType dtype : {DType::kF64, DType::kF32, DType::kBf16}) {
      const TensorSpec s({3, 17, 5, 7}, dtype, layout);
      const Tensor x = random_tensor(s, 1), y = random_tensor(s, 2);
      const std::vector<double> a = to_doubles(x), b = to_doubles(y);
      double expected = 0;
      for (size_t i = 0; i < a.size(); ++i) expected += (a[i] - b[i]) * (a[i] - b[i]) / static_cast<double>(a.size());

      const Tensor loss = mse(x, y);

      EXPECT_EQ(loss.spec(), TensorSpec(Shape{}, dtype == DType::kF64 ? DType::kF64 : DType::kF32));
      EXPECT_NEAR(loss.item(), expected, 32 * unit_roundoff(dtype));
    }
  }
}

}  // namespace
}  // namespace plumb::test
