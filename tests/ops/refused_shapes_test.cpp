// Shapes and sizes that ops refuse: the sentence names the op and what is wrong with which shapes.
#include "ops/batch_norm.h"
#include "ops/concat.h"
#include "ops/conv2d.h"
#include "ops/convert.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/fill.h"
#include "ops/grad.h"
#include "ops/linear.h"
#include "ops/matmul.h"
#include "ops/mse.h"
#include "ops/pad2d.h"
#include "ops/permute.h"
#include "ops/pool2d.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/slice.h"
#include "ops/softmax.h"
#include "tests/ops/refusal.h"

namespace plumb::test {
namespace {

Pool2dParams window(int32_t kernel, int32_t stride, int32_t padding = 0) {
  return {{kernel, kernel}, {stride, stride}, {padding, padding, padding, padding}};
}
constexpr int32_t kHuge = 2147483647;

TEST(Refusals, OfRanks) {
  const Refusal table[] = {
      {CALL(conv2d(of({3, 4, 4}), of({2, 3, 1, 1}))), {"conv2d: x is f32 (3, 4, 4) nchw"}},
      {CALL(conv2d(of({1, 3, 4, 4}), of({2, 3, 1}))), {"conv2d: w is f32 (2, 3, 1) nchw"}},
      {CALL(conv2d(of({1, 3, 4, 4}), of({2, 3, 1, 1}), of({2, 1}))), {"conv2d: b is f32 (2, 1) nchw"}},
      {CALL(linear(of({}), of({2, 3}))), {"linear: x is f32 () nchw"}},
      {CALL(linear(of({4, 3}), of({2, 3, 1}))), {"linear: w is f32 (2, 3, 1) nchw"}},
      {CALL(matmul(of({3}), of({3, 2}))), {"matmul: a (3) and b (3, 2)"}},
      {CALL(max_pool2d(of({3, 4, 4}))), {"max_pool2d: x (3, 4, 4)"}},
      {CALL(avg_pool2d(of({3, 4}))), {"avg_pool2d: x (3, 4)"}},
      {CALL(global_avg_pool2d(of({3, 4}))), {"global_avg_pool2d: x (3, 4)"}},
      {CALL(norm(of({2, 3, 4}), of({3}))), {"batch_norm: x is f32 (2, 3, 4) nchw"}},
      {CALL(softmax(of({}))), {"softmax: dimension -1 of x ()"}},
      {CALL(cross_entropy(of({3}), labels(3))), {"cross_entropy: logits are f32 (3) nchw"}},
      {CALL(cross_entropy(of({2, 3}), of({2, 1}, kI64))), {"cross_entropy: labels are i64 (2, 1) nchw"}},
      {CALL(pad2d(of({3, 4}), {1, 1, 1, 1})), {"pad2d: x is f32 (3, 4) nchw"}},
      {CALL(slice(of({3, 4}), {0}, {1})), {"slice: a part of shape (1) that starts at (0)", "(3, 4)"}},
      {CALL(pad(of({3, 4}), {0}, {5})), {"pad: a part of shape (3, 4) that starts at (0)", "(5)"}},
      {CALL(concat({of({3, 4}), of({3})}, 0)), {"concat: tensors have shapes (3, 4) and (3)"}},
      {CALL(permute(of({3, 4}), {0})), {"permute: 1 dimensions are named, x (3, 4) has 2"}},
      {CALL(flatten(of({}))), {"flatten: x has no dimensions"}},
      {CALL(reshape(of({4}), {1, 1, 1, 1, 1, 1, 4})), {"reshape: 7 extents", "the largest rank is 6"}},
      {CALL(to(of({3, 4}), kNhwc)), {"to: x has shape (3, 4); layout nhwc"}},
      {CALL(sum(of({3, 4}), {2})), {"sum: dimension 2 of x (3, 4)"}},
      {CALL(argmax(of({3}), {-2})), {"argmax: dimension -2 of x (3)"}},
      {CALL(expand(of({2, 3}), TensorSpec(Shape{3}))), {"expand: ", "(2, 3)", "(3)"}},
      {CALL(sum_to(of({3}), TensorSpec(Shape{2, 3}))), {"sum_to: x (3)", "(2, 3)"}},
  };
  expect_refused(table);
}

TEST(Refusals, OfSizes) {
  const Refusal table[] = {
      {CALL(conv2d(of({1, 4, 4, 4}), of({2, 3, 1, 1}))), {"conv2d: w has 3 input channels", "x has 4"}},
      {CALL(conv2d(of({1, 4, 4, 4}), of({3, 2, 1, 1}), {.groups = 2})),
       {"conv2d: w has 3 output channels, which 2 groups"}},
      {CALL(conv2d(of({1, 4, 4, 4}), of({3, 4, 1, 1}), {.groups = 0})), {"conv2d: ", "0 groups"}},
      {CALL(conv2d(of({1, 3, 4, 4}), of({2, 3, 5, 5}))), {"conv2d: the kernel reaches over 5", "of 4"}},
      {CALL(conv2d(of({1, 3, 4, 4}), of({2, 3, 1, 1}), {.stride = {1, 0}})), {"conv2d: stride 0"}},
      {CALL(conv2d(of({1, 3, 4, 4}), of({2, 3, 1, 1}), {.dilation = {-1, 1}})), {"conv2d: stride 1 and dilation -1"}},
      {CALL(conv2d(of({1, 3, 4, 4}), of({2, 3, 1, 1}), {.padding = {0, -1, 0, 0}})), {"conv2d: a padding is -1"}},
      {CALL(conv2d(of({1 << 12, 1, 1, 1}), of({1, 1, 1, 1}), {.padding = {kHuge, kHuge, kHuge, kHuge}})),
       {"more elements than fit"}},
      {CALL(conv2d(of({1, 3, 4, 4}), of({0, 3, 1, 1}))), {"conv2d: w (0, 3, 1, 1) has no elements"}},
      {CALL(linear(of({4, 3}), of({2, 5}))), {"linear: w (2, 5) takes 5 inputs, x (4, 3) has 3"}},
      {CALL(linear(of({4, 3}), of({2, 3}), of({3}))), {"linear: b is f32 (3) nchw; it must be f32 (2)"}},
      {CALL(matmul(of({2, 3}), of({4, 5}))), {"matmul: a (2, 3) has 3 columns and b (4, 5) has 4"}},
      {CALL(matmul(of({2, 1, 1}), of({3, 1, 1}))), {"matmul: the batches of a (2, 1, 1)", "(3, 1, 1)"}},
      {CALL(add(of({2, 3}), of({4}))), {"add: a (2, 3) and b (4)"}},
      {CALL(max_pool2d(of({1, 1, 4, 4}), window(5, 1))), {"max_pool2d: a kernel of 5", "4 elements"}},
      {CALL(max_pool2d(of({1, 1, 4, 4}), window(0, 1))), {"max_pool2d: kernel 0"}},
      {CALL(avg_pool2d(of({1, 1, 4, 4}), window(2, -1))), {"avg_pool2d: kernel 2 and stride -1"}},
      {CALL(avg_pool2d(of({1, 1, 4, 4}), window(2, 2, 2))), {"avg_pool2d: padding 2 and 2", "kernel 2"}},
      {CALL(max_pool2d(of({1, 1, 4, 4}), window(2, 2, -1))), {"max_pool2d: padding -1"}},
      {CALL(max_pool2d(of({1, 1, 0, 4}), window(2, 2, 1))), {"max_pool2d: ", "0 elements of x"}},
      {CALL(global_avg_pool2d(of({2, 3, 0, 4}))), {"(2, 3, 0, 4) has no elements to average"}},
      {CALL(norm(of({2, 4}), of({3}))), {"batch_norm: gamma is f32 (3) nchw", "it must be f32 (4)"}},
      {CALL(norm(of({1, 3, 1, 1}), of({3}))), {"batch_norm: training", "(1, 3, 1, 1) has 1"}},
      {CALL(norm(of({0, 3, 4, 4}), of({3}))), {"batch_norm: training", "(0, 3, 4, 4) has 0"}},
      {CALL([](const Tensor& s) {
         return batch_norm(of({2, 3}), of({3}), of({3}), s, s, {.train = 1});
       }(of({3}))),
       {"batch_norm: running_mean and running_var are written to"}},
      {CALL([](const Tensor& s) {
         return batch_norm(of({2, 3}), s, of({3}), s, of({3}), {.train = 1});
       }(of({3}))),
       {"batch_norm: running_mean and running_var are written to"}},
      {CALL(norm(of({2, 3}), of({3}), {.momentum = 1.5})), {"batch_norm: momentum is 1.5"}},
      {CALL(cross_entropy(of({2, 3}), labels(3))), {"cross_entropy: labels are i64 (3)", "(2, 3)"}},
      {CALL(cross_entropy(of({0, 3}), labels(0))), {"cross_entropy: logits (0, 3)"}},
      {CALL(cross_entropy(of({2, 0}), labels(2))), {"cross_entropy: logits (2, 0)"}},
      {CALL(mse(of({2, 3}), of({3}))), {"mse: x is f32 (2, 3) nchw and y is f32 (3) nchw"}},
      {CALL(mse(of({0}), of({0}))), {"mse: x (0) has no elements to average"}},
      {CALL(slice(of({3}), {2}, {2})), {"slice: a part of shape (2) that starts at (2)", "(3)"}},
      {CALL(slice(of({3}), {int64_t{1} << 56}, {2})), {"slice: a part of shape (2)"}},
      {CALL(slice(of({3}), {-1}, {2})), {"shape (-1) has a negative extent"}},
      {CALL(pad(of({3}), {0}, {2})), {"pad: a part of shape (3)", "(2)"}},
      {CALL(pad2d(of({1, 1, 2, 2}), {0, 0, -1, 0})), {"pad2d: a padding is -1"}},
      {CALL(pad2d(of({1, 1, 2, 2}), {INT64_MAX, 1, 0, 0})), {"pad2d: a padding is 9223372036854775807"}},
      {CALL(concat({of({3, 4}), of({3, 5})}, 0)), {"concat: tensors have shapes (3, 4) and (3, 5)"}},
      {CALL(reshape(of({4}), Shape{5})), {"reshape: x (4) has 4 elements, (5) has 5"}},
      {CALL(reshape(of({4}), {-1, 3})), {"reshape: x (4) has 4 elements, which 3"}},
      {CALL(reshape(of({4}), {-1, -1})), {"reshape: more than one extent is -1"}},
      {CALL(reshape(of({4}), {-2, -2})), {"shape (-2, -2) has a negative extent"}},
      {CALL(reshape(of({4}), {-1, int64_t{1} << 40, int64_t{1} << 40})), {"reshape: ", "1099511627776"}},
      {CALL(Shape({int64_t{1} << 40, int64_t{1} << 40})), {"more elements than fit"}},
      {CALL(dropped(of({3}), 1.0)), {"dropout: p is 1"}},
      {CALL(expand(of({2}), TensorSpec(Shape{3}))), {"expand: a (2) and b (3)"}},
      {CALL(sum_to(of({4}), TensorSpec(Shape{3}))), {"sum_to: x (4)", "(3)"}},
  };
  expect_refused(table);
}

TEST(Refusals, OfEmptyTensors) {
  const Refusal table[] = {
      {CALL(flatten(Tensor())), {"flatten: x is an empty tensor"}},
      {CALL(expand(Tensor(), TensorSpec(Shape{2}))), {"expand: x is an empty tensor"}},
      {CALL(zeros_like(Tensor())), {"zeros_like: x is an empty tensor"}},
      {CALL(ones_like(Tensor())), {"ones_like: x is an empty tensor"}},
      {CALL(grad(Tensor(), {of({})})), {"grad: y is an empty tensor"}},
      {CALL(Tensor().spec()), {"the tensor is empty"}},
  };
  expect_refused(table);
}

TEST(Refusals, OfADimensionThatAShapeDoesNotHave) {
  EXPECT_TRUE(refused([] { Shape({1, 2}).with(2, 3); }, "shape (1, 2) has no dimension 2"));
}

}  // namespace
}  // namespace plumb::test
