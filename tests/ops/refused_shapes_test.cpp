// Shapes and sizes that ops refuse: the sentence names the op and what is wrong with which shapes.
#include <cmath>

#include "ops/batch_norm.h"
#include "ops/concat.h"
#include "ops/conv2d.h"
#include "ops/convert.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/fill.h"
#include "ops/grad.h"
#include "ops/index_select.h"
#include "ops/layer_norm.h"
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

constexpr int32_t kHuge = 2147483647;

TEST(Refusals, OfRanks) {
  const Refusal table[] = {
      {CALL(conv2d(of({3, 4, 4}), of({2, 3, 1, 1}))), {"conv2d: x is f32 (3, 4, 4) nchw; it must be (N, C, H, W)"}},
      {CALL(conv2d(of({1, 3, 4, 4}), of({2, 3, 1}))),
       {"conv2d: w is f32 (2, 3, 1) nchw; it must be (OC, IC / groups, KH, KW), row-major"}},
      {CALL(conv2d(of({1, 3, 4, 4}), of({2, 3, 1, 1}), of({2, 1}))),
       {"conv2d: b is f32 (2, 1) nchw; it must be f32 (2)"}},
      {CALL(linear(of({}), of({2, 3}))), {"linear: x is f32 () nchw; it must be (..., IN), row-major"}},
      {CALL(linear(of({4, 3}), of({2, 3, 1}))), {"linear: w is f32 (2, 3, 1) nchw; it must be (OUT, IN)"}},
      {CALL(matmul(of({3}), of({3, 2}))), {"matmul: a (3) and b (3, 2) must have at least two dimensions"}},
      {CALL(max_pool2d(of({3, 4, 4}))), {"max_pool2d: x (3, 4, 4) must have the four dimensions (N, C, H, W)"}},
      {CALL(avg_pool2d(of({3, 4}))), {"avg_pool2d: x (3, 4)"}},
      {CALL(global_avg_pool2d(of({3, 4}))), {"global_avg_pool2d: x (3, 4)"}},
      {CALL(norm(of({2, 3, 4}), of({3}))), {"batch_norm: x is f32 (2, 3, 4) nchw; it must be (N, C) or (N, C, H, W)"}},
      {CALL(layer_norm(of({}))), {"layer_norm: of x () the last 1 dimensions are to be normalised; it has 0"}},
      {CALL(layer_norm(of({2, 3}), 0)), {"layer_norm: of x (2, 3) the last 0 dimensions are to be normalised"}},
      {CALL(layer_norm(of({2, 3}), 3)), {"layer_norm: of x (2, 3) the last 3 dimensions", "it has 2"}},
      {CALL(layer_norm(of({2, 3}), of({}))), {"layer_norm: of x (2, 3) the last 0 dimensions"}},
      {CALL(layer_norm(of({3}), of({2, 3}))), {"layer_norm: of x (3) the last 2 dimensions", "it has 1"}},
      {CALL(softmax(of({}))), {"softmax: dimension -1 of x ()"}},
      {CALL(log_softmax(of({}))), {"log_softmax: dimension -1 of x () does not exist"}},
      {CALL(softmax(of({2, 3}), 2)), {"softmax: dimension 2 of x (2, 3) does not exist"}},
      {CALL(cross_entropy(of({3}), labels(3))), {"cross_entropy: logits are f32 (3) nchw; they must be (N, K)"}},
      {CALL(cross_entropy(of({2, 3}), of({2, 1}, kI64))), {"cross_entropy: labels are i64 (2, 1) nchw"}},
      {CALL(pad2d(of({3, 4}), {1, 1, 1, 1})), {"pad2d: x is f32 (3, 4) nchw"}},
      {CALL(slice(of({3, 4}), {0}, {1})), {"slice: a part of shape (1) that starts at (0)", "(3, 4)"}},
      {CALL(pad(of({3, 4}), {0}, {5})), {"pad: a part of shape (3, 4) that starts at (0)", "(5)"}},
      {CALL(concat({of({3, 4}), of({3})}, 0)), {"concat: tensors have shapes (3, 4) and (3)"}},
      {CALL(concat({of({3, 4}), of({3, 4})}, 2)), {"concat: dimension 2"}},
      {CALL(concat({of({3, 4}), of({3, 4})}, -3)), {"concat: dimension -3 of a tensor (3, 4)"}},
      {CALL(index_select(of({}), 0, labels(2))), {"index_select: dimension 0 of x () does not exist"}},
      {CALL(index_select(of({3, 4}), 2, labels(2))), {"index_select: dimension 2 of x (3, 4) does not exist"}},
      {CALL(index_select(of({3, 4}), -3, labels(2))), {"index_select: dimension -3 of x (3, 4)"}},
      {CALL(index_select(of({3, 4}), 0, of({2, 1}, kI64))),
       {"index_select: the index is i64 (2, 1) nchw; it must be i64 (N)"}},
      {CALL(permute(of({3, 4}), {0})), {"permute: 1 dimensions are named, x (3, 4) has 2"}},
      {CALL(permute(of({2, 3, 4}), {0, 1, 3})), {"permute: dimension 3"}},
      {CALL(permute(of({2, 3, 4}), {0, -4, 1})), {"permute: dimension -4"}},
      {CALL(permute(of({2, 3, 4}), {0, 1, -2})), {"permute: dimension 1 of x (2, 3, 4) is named twice"}},
      {CALL(flatten(of({}))), {"flatten: x has no dimensions"}},
      {CALL(reshape(of({4}), {1, 1, 1, 1, 1, 1, 4})), {"reshape: 7 extents", "the largest rank is 6"}},
      {CALL(to(of({3, 4}), kNhwc)), {"to: x has shape (3, 4); layout nhwc"}},
      {CALL(sum(of({3, 4}), {2})), {"sum: dimension 2 of x (3, 4) does not exist"}},
      {CALL(mean(of({2, 3}), {-3})), {"mean: dimension -3 of x (2, 3) does not exist"}},
      {CALL(max(of({2, 3}), {1, -1})), {"max: dimension -1 of x (2, 3) is named twice"}},
      {CALL(argmax(of({3}), {-2})), {"argmax: dimension -2 of x (3)"}},
      {CALL(argmax(of({2, 3}), {0, 1})), {"argmax: 2 dimensions were named"}},
      {CALL(expand(of({2, 3}), TensorSpec(Shape{3}))), {"expand: ", "(2, 3)", "(3)"}},
      {CALL(sum_to(of({3}), TensorSpec(Shape{2, 3}))), {"sum_to: x (3)", "(2, 3)"}},
  };
  expect_refused(table);
}

TEST(Refusals, OfSizes) {
  const Refusal table[] = {
      {CALL(conv2d(of({1, 4, 4, 4}), of({2, 3, 1, 1}))), {"conv2d: w has 3 input channels in 1 groups, x has 4"}},
      {CALL(conv2d(of({1, 4, 4, 4}), of({3, 2, 1, 1}), {.groups = 2})),
       {"conv2d: w has 3 output channels, which 2 groups do not divide"}},
      {CALL(conv2d(of({1, 4, 4, 4}), of({3, 4, 1, 1}), {.groups = 0})), {"conv2d: ", "0 groups"}},
      {CALL(conv2d(of({1, 3, 4, 4}), of({2, 3, 5, 5}))),
       {"conv2d: the kernel reaches over 5 rows or columns, and x has a height of 4"}},
      {CALL(conv2d(of({1, 3, 4, 4}), of({2, 3, 1, 3}), {.dilation = {1, 3}})), {"x has a width of 4"}},
      {CALL(conv2d_output({.dilation = {1 << 30, 1}}, Shape{1, 1, 1, 1}, Shape{1, 1, int64_t{1} << 40, 1})),
       {"conv2d: the kernel reaches over 9223372036854775807 rows or columns"}},
      {CALL(conv2d(of({1, 3, 4, 4}), of({2, 3, 1, 1}), {.stride = {1, 0}})),
       {"conv2d: stride 0 and dilation 1 must be at least 1"}},
      {CALL(conv2d(of({1, 3, 4, 4}), of({2, 3, 1, 1}), {.dilation = {-1, 1}})), {"conv2d: stride 1 and dilation -1"}},
      {CALL(conv2d(of({1, 3, 4, 4}), of({2, 3, 1, 1}), {.padding = {0, -1, 0, 0}})), {"conv2d: a padding is -1"}},
      {CALL(conv2d(of({1 << 12, 1, 1, 1}), of({1, 1, 1, 1}), {.padding = {kHuge, kHuge, kHuge, kHuge}})),
       {"more elements than fit"}},
      {CALL(conv2d(of({1, 3, 4, 4}), of({0, 3, 1, 1}))), {"conv2d: w (0, 3, 1, 1) has no elements"}},
      {CALL(conv2d(of({1, 1, 3, 3}), of({1, 1, 3, 3}), {.activation = static_cast<Activation>(77)})),
       {"conv2d: activation 77 is unknown; use kNone or kRelu"}},
      {CALL(linear(of({2, 3}), of({2, 3}), Tensor(), static_cast<Activation>(77))),
       {"linear: activation 77 is unknown; use kNone or kRelu"}},
      {CALL(linear(of({4, 3}), of({2, 5}))), {"linear: w (2, 5) takes 5 inputs, x (4, 3) has 3"}},
      {CALL(linear(of({4, 3}), of({2, 3}), of({3}))), {"linear: b is f32 (3) nchw; it must be f32 (2)"}},
      {CALL(matmul(of({2, 3}), of({4, 5}))), {"matmul: a (2, 3) has 3 columns and b (4, 5) has 4 rows"}},
      {CALL(matmul(of({2, 3}), of({4, 5}), true, true)),
       {"matmul: a (2, 3) transposed has 2 columns and b (4, 5) transposed has 5 rows"}},
      {CALL(matmul(of({2, 1, 1}), of({3, 1, 1}))),
       {"matmul: the batches of a (2, 1, 1) and b (3, 1, 1) do not broadcast"}},
      {CALL(add(of({2, 3}), of({4}))), {"add: a (2, 3) and b (4) do not broadcast to one shape"}},
      {CALL(max_pool2d(of({1, 1, 4, 4}), {.kernel = 65536, .stride = 65536, .padding = 40000})),
       {"max_pool2d: a kernel of 65536 x 65536 has more places than an i32 counts"}},
      {CALL(max_pool2d(of({1, 1, 4, 4}), {.kernel = 5})), {"max_pool2d: a kernel of 5", "4 elements"}},
      {CALL(max_pool2d(of({1, 1, 4, 4}), {.kernel = {3, 6}, .padding = {0, 0, 1, 0}})),
       {"a kernel of 6 does not fit into 4 elements of x and padding 1 and 0 along W"}},
      {CALL(max_pool2d(of({1, 1, 4, 4}), {.kernel = {0, 2}})),
       {"max_pool2d: kernel 0 and stride 0 along H must be positive"}},
      {CALL(max_pool2d(of({1, 1, 4, 4}), {.stride = {1, -1}})),
       {"max_pool2d: kernel 2 and stride -1 along W must be positive"}},
      {CALL(avg_pool2d(of({1, 1, 4, 4}), {.stride = -1})), {"avg_pool2d: kernel 2 and stride -1"}},
      {CALL(avg_pool2d(of({1, 1, 4, 4}), {.padding = 2})),
       {"avg_pool2d: padding 2 and 2 along H must be smaller than the kernel 2"}},
      {CALL(max_pool2d(of({1, 1, 4, 4}), {.padding = {0, 2, 0, 0}})),
       {"max_pool2d: padding 0 and 2 along H must be smaller than the kernel 2"}},
      {CALL(max_pool2d(of({1, 1, 4, 4}), {.padding = -1})), {"max_pool2d: padding -1"}},
      {CALL(max_pool2d(of({1, 1, 4, 4}), {.padding = {0, 0, -1, 0}})), {"padding -1 and 0 along W"}},
      {CALL(avg_pool2d(of({1, 1, 4, 4}), {.count_include_pad = 2})), {"avg_pool2d: count_include_pad is 2"}},
      {CALL(max_pool2d(of({1, 1, 0, 4}), {.padding = 1})), {"max_pool2d: ", "0 elements of x"}},
      {CALL(global_avg_pool2d(of({2, 3, 0, 4}))), {"global_avg_pool2d: x (2, 3, 0, 4) has no pixels to average"}},
      {CALL(norm(of({2, 4}), of({3}))), {"batch_norm: gamma is f32 (3) nchw", "it must be f32 (4)"}},
      {CALL(batch_norm(of({4, 3}), of({3}), of({4}), of({3}), of({3}))), {"batch_norm: beta is f32 (4) nchw"}},
      {CALL(batch_norm(of({4, 3}), of({3}), of({3}), of({3}), of({3}), {}, of({3}))),
       {"batch_norm: the addend is f32 (3) nchw and x is f32 (4, 3) nchw", "they must be of one spec"}},
      {CALL(norm(of({1, 3, 1, 1}), of({3}))),
       {"batch_norm: training needs more than one value a channel, and x (1, 3, 1, 1) has 1"}},
      {CALL(norm(of({0, 3, 4, 4}), of({3}))), {"batch_norm: training", "(0, 3, 4, 4) has 0"}},
      {CALL([](const Tensor& s) {
         return batch_norm(of({2, 3}), of({3}), of({3}), s, s, {.train = 1});
       }(of({3}))),
       {"batch_norm: running_mean and running_var are written to"}},
      {CALL([](const Tensor& s) {
         return batch_norm(of({2, 3}), s, of({3}), s, of({3}), {.train = 1});
       }(of({3}))),
       {"batch_norm: running_mean and running_var are written to"}},
      {CALL(layer_norm(of({2, 4}), of({3}))),
       {"layer_norm: w is f32 (3) nchw; for x f32 (2, 4) nchw it must be f32 (4) nchw"}},
      {CALL(layer_norm(of({2, 3, 4}), of({4, 3}))), {"layer_norm: w is f32 (4, 3) nchw", "it must be f32 (3, 4)"}},
      {CALL(layer_norm(of({2, 4}), of({4}), of({2, 4}))), {"layer_norm: b is f32 (2, 4) nchw", "it must be f32 (4)"}},
      {CALL(layer_norm(of({2, 4}), Tensor(), of({2}))), {"layer_norm: b is f32 (2) nchw", "it must be f32 (4)"}},
      {CALL(layer_norm(of({2, 0}))), {"layer_norm: x (2, 0) has no elements along dimension 1 to take the mean of"}},
      {CALL(layer_norm(of({2, 0, 3}), 2)), {"layer_norm: x (2, 0, 3) has no elements along dimension 1"}},
      {CALL(layer_norm(of({2, 3}), 1, -1.0)), {"layer_norm: epsilon is -1; it must be a number from 0 on"}},
      {CALL(layer_norm(of({2, 3}), 1, std::nan(""))), {"layer_norm: epsilon is nan"}},
      {CALL(norm(of({2, 3}), of({3}), {.momentum = 1.5})), {"batch_norm: momentum is 1.5"}},
      {CALL(norm(of({2, 3}), of({3}), {.epsilon = -1.0})), {"batch_norm: epsilon is -1"}},
      {CALL(cross_entropy(of({2, 3}), labels(3))),
       {"cross_entropy: labels are i64 (3) nchw; for logits (2, 3) they must be i64 (2)"}},
      {CALL(cross_entropy(of({0, 3}), labels(0))), {"cross_entropy: logits (0, 3) have no rows to average"}},
      {CALL(cross_entropy(of({2, 0}), labels(2))), {"cross_entropy: logits (2, 0) have no classes"}},
      {CALL(mse(of({2, 3}), of({3}))), {"mse: x is f32 (2, 3) nchw and y is f32 (3) nchw", "they must be of one spec"}},
      {CALL(mse(of({0}), of({0}))), {"mse: x (0) has no elements to average"}},
      {CALL(slice(of({3}), {2}, {2})), {"slice: a part of shape (2) that starts at (2) does not lie within (3)"}},
      {CALL(slice(of({3}), {int64_t{1} << 56}, {2})), {"slice: a part of shape (2)"}},
      {CALL(slice(of({3}), {-1}, {2})), {"shape (-1) has a negative extent"}},
      {CALL(pad(of({3}), {0}, {2})), {"pad: a part of shape (3)", "(2)"}},
      {CALL(pad2d(of({1, 1, 2, 2}), {0, 0, -1, 0})), {"pad2d: a padding is -1"}},
      {CALL(pad2d(of({1, 1, 2, 2}), {INT64_MAX, 1, 0, 0})), {"pad2d: a padding is 9223372036854775807"}},
      {CALL(index_add(of({3, 4}), -2, labels(2), 5)),
       {"index_add: the index has 2 numbers; dimension -2 of x (3, 4) has 3 slices"}},
      {CALL(index_add(of({3, 4}), 0, labels(3), -1)), {"index_add: y cannot have -1 slices"}},
      {CALL(concat({of({3, 4}), of({3, 5})}, 0)), {"concat: tensors have shapes (3, 4) and (3, 5)"}},
      {CALL(reshape(of({4}), Shape{5})), {"reshape: x (4) has 4 elements, (5) has 5"}},
      {CALL(reshape(of({4}), {-1, 3})), {"reshape: x (4) has 4 elements, which 3"}},
      {CALL(reshape(of({4}), {-1, -1})), {"reshape: more than one extent is -1"}},
      {CALL(reshape(of({4}), {-2, -2})), {"shape (-2, -2) has a negative extent"}},
      {CALL(reshape(of({4}), {-1, int64_t{1} << 40, int64_t{1} << 40})), {"reshape: ", "1099511627776"}},
      {CALL(Shape({int64_t{1} << 40, int64_t{1} << 40})), {"more elements than fit"}},
      {CALL(dropped(of({3}), 1.0)), {"dropout: p is 1; it must be at least 0 and less than 1"}},
      {CALL(dropped(of({3}), 2.0)), {"it must be at least 0 and less than 1"}},
      {CALL(dropped(of({3}), -0.1)), {"it must be at least 0 and less than 1"}},
      {CALL(dropped(of({3}), std::nan(""))), {"it must be at least 0 and less than 1"}},
      {CALL(expand(of({2}), TensorSpec(Shape{3}))), {"expand: x (2) does not broadcast to (3)"}},
      {CALL(sum_to(of({4}), TensorSpec(Shape{3}))), {"sum_to: x (4)", "(3)"}},
  };
  expect_refused(table);
}

TEST(Refusals, OfEmptyTensors) {
  const Refusal table[] = {
      {CALL(conv2d(of({1, 3, 4, 4}), Tensor())), {"conv2d: w is an empty tensor"}},
      {CALL(linear(Tensor(), Tensor())), {"linear: x is an empty tensor"}},
      {CALL(matmul(Tensor(), of({2, 2}))), {"matmul: a is an empty tensor"}},
      {CALL(relu(Tensor())), {"relu: x is an empty tensor"}},
      {CALL(add(of({2}), Tensor())), {"add: b is an empty tensor"}},
      {CALL(max_pool2d(Tensor())), {"max_pool2d: x is an empty tensor"}},
      {CALL(avg_pool2d(Tensor())), {"avg_pool2d: x is an empty tensor"}},
      {CALL(global_avg_pool2d(Tensor())), {"global_avg_pool2d: x is an empty tensor"}},
      {CALL(norm(Tensor(), of({3}))), {"batch_norm: x is an empty tensor"}},
      {CALL(batch_norm(of({4, 3}), Tensor(), of({3}), of({3}), of({3}))), {"batch_norm: gamma is an empty tensor"}},
      {CALL(layer_norm(Tensor())), {"layer_norm: x is an empty tensor"}},
      {CALL(layer_norm(Tensor(), of({3}))), {"layer_norm: x is an empty tensor"}},
      {CALL(layer_norm(of({4, 3}), Tensor())),
       {"layer_norm: w and b are empty tensors; say over how many dimensions: layer_norm(x, 1)"}},
      {CALL(softmax(Tensor())), {"softmax: x is an empty tensor"}},
      {CALL(cross_entropy(Tensor(), labels(2))), {"cross_entropy: logits are an empty tensor"}},
      {CALL(cross_entropy(of({2, 3}), Tensor())), {"cross_entropy: labels are an empty tensor"}},
      {CALL(dropped(Tensor(), 0.5)), {"dropout: x is an empty tensor"}},
      {CALL(sum(Tensor())), {"sum: x is an empty tensor"}},
      {CALL(concat({}, 0)), {"concat: the list of tensors is empty"}},
      {CALL(concat({of({2}), Tensor()}, 0)), {"concat: tensor 1 of 2 is empty"}},
      {CALL(slice(Tensor(), {}, {})), {"slice: x is an empty tensor"}},
      {CALL(pad2d(Tensor(), {1, 1, 1, 1})), {"pad2d: x is an empty tensor"}},
      {CALL(permute(Tensor(), {})), {"permute: x is an empty tensor"}},
      {CALL(to(Tensor(), kNhwc)), {"to: x is an empty tensor"}},
      {CALL(to(Tensor(), kF64)), {"to: x is an empty tensor"}},
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
