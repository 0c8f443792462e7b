// A tensor that is written between forward and backward: what backward would need of it is refused, and what it does
// not need may be written. Nothing is silently differentiated at the new numbers.
#include <cmath>

#include "ops/concat.h"
#include "ops/conv2d.h"
#include "ops/convert.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/grad.h"
#include "ops/index_select.h"
#include "ops/layer_norm.h"
#include "ops/linear.h"
#include "ops/matmul.h"
#include "ops/mse.h"
#include "ops/pool2d.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/softmax.h"
#include "tests/ops/refusal.h"

namespace plumb::test {
namespace {

constexpr int kY = -1;  // the output

struct Written {
  const char* name;
  std::vector<TensorSpec> inputs;
  std::vector<int> needed;  // by the gradients of all floating inputs: inputs, or the output
  Function run;
};

const Shape kX{2, 3, 4, 4};
const std::vector<Written> kOps = {
    {"conv2d", {kX, Shape{4, 3, 1, 1}}, {0, 1}, [](auto in) { return conv2d(in[0], in[1]); }},
    {"conv2d_relu",
     {kX, Shape{4, 3, 1, 1}},
     {0, 1, kY},
     [](auto in) { return conv2d(in[0], in[1], {.activation = Activation::kRelu}); }},
    {"conv2d_bias", {kX, Shape{4, 3, 1, 1}, Shape{4}}, {0, 1}, [](auto in) { return conv2d(in[0], in[1], in[2]); }},
    {"linear", {Shape{2, 3}, Shape{4, 3}, Shape{4}}, {0, 1}, [](auto in) { return linear(in[0], in[1], in[2]); }},
    {"matmul", {Shape{2, 3}, Shape{3, 4}}, {0, 1}, [](auto in) { return matmul(in[0], in[1]); }},
    {"add", {kX, kX}, {}, [](auto in) { return add(in[0], in[1]); }},
    {"sub", {kX, kX}, {}, [](auto in) { return sub(in[0], in[1]); }},
    {"mul", {kX, kX}, {0, 1}, [](auto in) { return mul(in[0], in[1]); }},
    {"div", {kX, kX}, {0, 1}, [](auto in) { return div(in[0], in[1]); }},
    {"maximum", {kX, kX}, {0, 1}, [](auto in) { return maximum(in[0], in[1]); }},
    {"relu", {kX}, {kY}, [](auto in) { return relu(in[0]); }},
    {"sigmoid", {kX}, {kY}, [](auto in) { return sigmoid(in[0]); }},
    {"gelu", {kX}, {0}, [](auto in) { return gelu(in[0]); }},
    {"affine", {kX}, {}, [](auto in) { return affine(in[0], 2, 1); }},
    {"max_pool2d", {kX}, {}, [](auto in) { return max_pool2d(in[0]); }},
    {"avg_pool2d", {kX}, {}, [](auto in) { return avg_pool2d(in[0]); }},
    {"batch_norm",
     {Shape{4, 3}, Shape{3}, Shape{3}},
     {0, 1},
     [](auto in) { return batch_norm(in[0], in[1], in[2], of({3}), of({3})); }},
    {"batch_norm_relu",
     {Shape{4, 3}, Shape{3}, Shape{3}},
     {0, 1, 2},
     [](auto in) { return batch_norm(in[0], in[1], in[2], of({3}), of({3}), {.activation = Activation::kRelu}); }},
    {"batch_norm_add_relu",
     {Shape{4, 3}, Shape{3}, Shape{3}, Shape{4, 3}},
     {0, 1, kY},
     [](auto in) {
       return batch_norm(in[0], in[1], in[2], of({3}), of({3}), {.activation = Activation::kRelu}, in[3]);
     }},
    {"layer_norm", {Shape{4, 3}, Shape{3}, Shape{3}}, {0, 1}, [](auto in) { return layer_norm(in[0], in[1], in[2]); }},
    {"softmax", {kX}, {kY}, [](auto in) { return softmax(in[0]); }},
    {"log_softmax", {kX}, {kY}, [](auto in) { return log_softmax(in[0]); }},
    {"cross_entropy",
     {Shape{2, 3}, TensorSpec(Shape{2}, kI64)},
     {0, 1},
     [](auto in) { return cross_entropy(in[0], in[1]); }},
    {"mse", {kX, kX}, {0, 1}, [](auto in) { return mse(in[0], in[1]); }},
    {"dropout", {kX}, {}, [](auto in) { return dropped(in[0], 0.5); }},
    {"concat", {kX, kX}, {}, [](auto in) { return concat(in, 1); }},
    {"index_select", {kX, TensorSpec(Shape{2}, kI64)}, {1}, [](auto in) { return index_select(in[0], 2, in[1]); }},
    {"index_add", {kX, TensorSpec(Shape{4}, kI64)}, {1}, [](auto in) { return index_add(in[0], 2, in[1], 3); }},
    {"reshape", {kX}, {}, [](auto in) { return reshape(in[0], Shape{96}); }},
    {"to_layout", {kX}, {}, [](auto in) { return to(in[0], kNhwc); }},
    {"to_dtype", {kX}, {}, [](auto in) { return to(in[0], kBf16); }},
    {"sum", {kX}, {}, [](auto in) { return sum(in[0]); }},
    {"max", {kX}, {0, kY}, [](auto in) { return max(in[0], {1}, true); }},
};

std::vector<Tensor> fresh_inputs(const Written& op) {
  std::vector<Tensor> inputs;
  for (const TensorSpec& s : op.inputs) {
    inputs.push_back(is_floating(s.dtype) ? random_tensor(s, 1 + inputs.size(), 0.1, 1) : of(s.shape, s.dtype));
    if (!is_floating(s.dtype)) std::fill_n(static_cast<int64_t*>(inputs.back().value->data), s.numel(), 1);
    if (is_floating(s.dtype)) inputs.back().require_grad();
  }
  return inputs;
}

TensorList gradients(const Tensor& y, std::span<const Tensor> inputs) {
  return grad(y, leaves_of(inputs), random_tensor(y.spec(), 9));
}

// With numbers that show in every result that looks at them.
void overwrite(Tensor t) {
  dispatch_dtype(t.dtype(), [&]<class T>() {
    for (T& v : t.mutable_data<T>()) v = is_floating(t.dtype()) ? T(NAN) : T(-1);
  });
}

TEST(Written, WhatBackwardNeedsIsRefusedAndTheRestIsNotLookedAt) {
  for (const Written& op : kOps) {
    const std::vector<Tensor> untouched = fresh_inputs(op);
    const TensorList expected = gradients(op.run(untouched), untouched);
    for (int i = kY; i < static_cast<int>(op.inputs.size()); ++i) {
      SCOPED_TRACE(message("{}, written: {}", op.name, i == kY ? "y" : std::to_string(i)));
      const std::vector<Tensor> inputs = fresh_inputs(op);
      const Tensor y = op.run(inputs);

      overwrite(i == kY ? y : inputs[static_cast<size_t>(i)]);

      if (std::find(op.needed.begin(), op.needed.end(), i) != op.needed.end()) {
        const std::string sentence = i == kY ? message("its output {} was written to", y.spec())
                                             : message("a tensor {} that was kept for backward was written to",
                                                       inputs[static_cast<size_t>(i)].spec());
        const std::string got = error_of([&] { gradients(y, inputs); });
        EXPECT_NE(got.find(sentence), got.npos) << got;
        EXPECT_NE(std::string(op.name).find(got.substr(0, got.find(':'))), std::string::npos) << "no op: " << got;
      } else {
        const TensorList got = gradients(y, inputs);
        for (size_t k = 0; k < expected.size(); ++k) EXPECT_TRUE(bitwise_equal(got[k], expected[k])) << k;
      }
    }
  }
}

TEST(Written, AViewIsItsOriginal) {
  const Tensor x = random_tensor(Shape{2, 3, 1, 1}, 1).require_grad();
  for (const bool by_layout : {false, true}) {
    const Tensor y = sigmoid(x);
    overwrite(by_layout ? to(y, kNhwc) : reshape(y, Shape{6}));
    EXPECT_TRUE(refused([&] { gradients(y, {&x, 1}); }, "was written to"));
  }
}

TEST(Written, RunningStatisticsThatTrainingMovedAreRefused) {
  const Tensor x = random_tensor(Shape{4, 3}, 1).require_grad(), c = of({3});
  const Tensor mean = of({3}), var = test::random_tensor(Shape{3}, 2, 0.5, 1);
  const Tensor y = batch_norm(x, c, c, mean, var, {.train = 0});

  batch_norm(x, c, c, mean, var, {.train = 1});

  EXPECT_TRUE(refused([&] { gradients(y, {&x, 1}); }, "was written to"));
}

}  // namespace
}  // namespace plumb::test
