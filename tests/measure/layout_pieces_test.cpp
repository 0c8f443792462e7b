#include "measure/piece_run.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "dispatch/policy.h"
#include "ops/cross_entropy.h"
#include "ops/grad.h"
#include "ops/linear.h"
#include "ops/random.h"
#include "ops/reduce.h"

namespace plumb::measure {
namespace {

// The second layer is so large that one kernel makes both its gradients at a batch of one; the first has but one.
class TwoLinear final : public models::Network {
 public:
  TwoLinear() : Network("two linear", Shape{3, 4, 4}, 4096) {
    models::ParameterMaker made;
    first_ = made.weight("first.weight", Shape{1024, 3}, 3, 1024);
    second_ = made.weight("second.weight", Shape{4096, 1024}, 1024, 4096);
    finish(std::move(made));
  }
  Tensor forward(const Tensor& x, const models::ForwardContext&) const override {
    return linear(linear(mean(x, {2, 3}), first_), second_);
  }

 private:
  Tensor first_, second_;
};

TEST(LayoutPiecesTest, TwoGradientsFromOneKernelAreOnePiece) {
  const TwoLinear network;
  const Tensor images = uniform(TensorSpec(Shape{1, 3, 4, 4}), 0, 1, 1);
  const Tensor labels = uniform(TensorSpec(Shape{1}, DType::kI64), 0, 255, 2);
  Generator generator(0);
  const Program program = capture([&] {
    const Tensor logits = network.forward(images, models::ForwardContext::training(generator));
    return grad(cross_entropy(logits, labels), network.trainable());
  });

  std::vector<std::string> with_weights;
  for (const Piece& piece : pieces_of(program, network)) {
    PieceRun run(piece);
    EXPECT_GT(run.run(), 0) << piece.layer;
    OnednnBest best(piece);
    if (!best) continue;
    EXPECT_GT(best.run(), 0) << piece.layer;
    with_weights.push_back(piece.layer + " " + piece.direction);
  }

  const std::vector<std::string> expected{"first forward", "second forward", "second backward",
                                          "first backward_weight"};
  EXPECT_EQ(with_weights, expected);
}

// Weights are widened and packed in a run, which is a good part of it where there are few rows.
TEST(LayoutPiecesTest, PacksOfWidenedWeightsAreConversions) {
  const TensorSpec x(Shape{8, 1024}, DType::kBf16), w(Shape{1024, 1024}, DType::kBf16), y = x;
  for (const char* algorithm : {"via_f32_matmul", "via_f32_inner_product", "via_f32_gemm"}) {
    const PolicyScope scope({.algorithm = algorithm_id(algorithm)});
    PieceRun run(Piece{.layer = "fc", .kernel = prepare<LinearForward>({}, {x, w}, {y}), .direction = "forward"});
    const double seconds = std::min(run.run(), run.run());
    EXPECT_GT(run.convert(), 0.05 * seconds) << algorithm;
  }
}

}  // namespace
}  // namespace plumb::measure
