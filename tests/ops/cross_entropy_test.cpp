#include "ops/cross_entropy.h"
#include "kernels/threads.h"

#include <cmath>

#include "core/random.h"
#include "ops/grad.h"
#include "ops/mse.h"
#include "tests/support/compare.h"
#include "tests/support/gradcheck.h"
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
  for (const Shape& s : {Shape{1, 1}, Shape{3, 10}, Shape{17, 33}, Shape{33, 1000}, Shape{1025, 3}}) {
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
  for (const Shape& s : {Shape{1, 1}, Shape{3, 10}, Shape{17, 33}, Shape{129, 1000}}) {
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

TEST(CrossEntropy, GradientsAndSecondDerivativesMatchDifferences) {
  for (const Shape& s : {Shape{1, 3}, Shape{5, 17}, Shape{33, 10}}) {
    for (const LossReduction reduction : kReductions) {
      SCOPED_TRACE(message("{} reduction {}", s, static_cast<int>(reduction)));
      const Tensor x = random_tensor({s, DType::kF64}, 1, -2, 2).require_grad(), labels = labels_for(s[0], s[1]);
      const auto f = [&](std::span<const Tensor> in) { return cross_entropy(in[0], labels, reduction); };

      EXPECT_TRUE(gradcheck(f, {&x, 1}, {.samples = 40}));
      EXPECT_TRUE(gradgradcheck(f, {&x, 1}));
    }
  }
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
  const int before = threads();
  const Tensor x = random_tensor(Shape{1003, 129}, 1, -4, 4).require_grad(), labels = labels_for(1003, 129);
  set_threads(1);
  const Tensor loss = cross_entropy(x, labels), dx = grad(loss, {x})[0];
  for (const int n : {2, 3, 5}) {
    set_threads(n);
    const Tensor again = cross_entropy(x, labels);
    EXPECT_TRUE(bitwise_equal(again, loss)) << n << " threads";
    EXPECT_TRUE(bitwise_equal(grad(again, {x})[0], dx)) << n << " threads";
  }
  set_threads(before);
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

TEST(CrossEntropy, RefusesLabelsThatWereWrittenBeforeBackward) {
  const Tensor x = random_tensor(Shape{3, 5}, 1).require_grad();
  Tensor labels = labels_for(3, 5);
  const Tensor loss = cross_entropy(x, labels);
  labels.mutable_data<int64_t>()[0] = 1;
  EXPECT_TRUE(refused([&] { grad(loss, {x}); }, "was written to in between"));
}

TEST(CrossEntropy, RefusesWhatItCannotDo) {
  const Tensor x = random_tensor(Shape{3, 5}, 1), labels = labels_for(3, 5);
  EXPECT_TRUE(refused([&] { cross_entropy(Tensor(), labels); }, "logits are an empty tensor"));
  EXPECT_TRUE(refused([&] { cross_entropy(x, Tensor()); }, "labels are an empty tensor"));
  EXPECT_TRUE(refused([&] { cross_entropy(random_tensor(Shape{3, 5, 2}, 1), labels); }, "must be (N, K)"));
  EXPECT_TRUE(refused([&] { cross_entropy(x, labels_for(4, 5)); }, "for logits (3, 5) they must be i64 (3)"));
  EXPECT_TRUE(refused([&] { cross_entropy(x, Tensor::from({1, 2, 3}, Shape{3})); }, "must be i64 (3)"));
  EXPECT_TRUE(refused([&] { cross_entropy(random_tensor(Shape{3, 0}, 1), labels); }, "no classes"));
  EXPECT_TRUE(refused([&] { cross_entropy(random_tensor(Shape{0, 5}, 1), labels_for(0, 5)); }, "no rows to average"));
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

TEST(Mse, GradientsAndSecondDerivativesMatchDifferences) {
  const TensorSpec s({3, 17}, DType::kF64);
  const Tensor in[2] = {random_tensor(s, 1).require_grad(), random_tensor(s, 2).require_grad()};
  const auto f = [](std::span<const Tensor> x) { return mse(x[0], x[1]); };
  EXPECT_TRUE(gradcheck(f, in));
  EXPECT_TRUE(gradgradcheck(f, in));
}

TEST(Mse, RefusesBroadcastingAndNothing) {
  EXPECT_TRUE(refused(
      [] {
        mse(random_tensor(Shape{3, 1}, 1), random_tensor(Shape{3}, 1));
      },
      "they must be of one spec"));
  EXPECT_TRUE(refused([] { mse(random_tensor(Shape{0}, 1), random_tensor(Shape{0}, 1)); }, "no elements to average"));
}

}  // namespace
}  // namespace plumb::test
