// The error that stands beside Winograd's figures, against errors that are known.
#include "measure/conv2d_error.h"

#include <gtest/gtest.h>

#include <cmath>

#include "dispatch/policy.h"
#include "dispatch/trial.h"
#include "kernels/conv2d.h"

namespace plumb::measure {
namespace {

// A kernel on its scratch memory, run once; the error after `damage` was added to an element of the result.
template <class K>
double error_of(const Conv2dParams& params, const std::vector<TensorSpec>& in, const TensorSpec& out, float damage) {
  const PolicyScope policy(Policy{.algorithm = algorithm_id("reference")});
  const detail::Ref<PreparedKernel> p =
      in.size() == 3 ? prepare<K>(params, {in[0], in[1], in[2]}, {out}) : prepare<K>(params, {in[0], in[1]}, {out});
  detail::Scratch scratch(p->in(), p->out());
  detail::Trial(scratch, p->in(), *p->kernel).run(nullptr);
  static_cast<float*>(scratch.out()[0])[0] += damage;
  return conv2d_error(*p, scratch.in(), scratch.out()[0]);
}

TEST(Conv2dError, IsRoundingForTheReferenceAndSeesAWrongElement) {
  const Conv2dParams p{.stride = {2, 1}, .dilation = {1, 2}, .padding = {1, 0, 2, 2}, .groups = 2};
  const TensorSpec x(Shape{2, 4, 7, 6}, DType::kF32, Layout::kNhwc), w(Shape{6, 2, 3, 3}), b(Shape{6});
  const TensorSpec y(Shape{2, 6, 3, 6}, DType::kF32, Layout::kNhwc);
  Conv2dParams fused = p;
  fused.activation = Activation::kRelu;

  for (const float damage : {0.0f, 100.0f}) {  // far above every sum
    const auto expect = [&](double error) {
      if (damage == 0) {
        EXPECT_LT(error, 1e-6);
      } else {
        EXPECT_GT(error, 1);
      }
    };
    expect(error_of<Conv2dForward>(p, {x, w}, y, damage));
    expect(error_of<Conv2dForward>(fused, {x, w, b}, y, damage));
    expect(error_of<Conv2dBackwardInput>(p, {y, w}, x, damage));
    expect(error_of<Conv2dBackwardWeight>(p, {y, x}, w, damage));
  }
}

TEST(Conv2dError, IsNanWhereTheResultIs) {
  const TensorSpec x(Shape{1, 1, 4, 4}), w(Shape{1, 1, 1, 1});
  EXPECT_TRUE(std::isnan(error_of<Conv2dForward>({}, {x, w}, x, std::nanf(""))));
}

}  // namespace
}  // namespace plumb::measure
