// Dtypes, layouts and devices that ops refuse: the sentence names the op and what they are.
#include "dispatch/machine.h"
#include "kernels/cpu/onednn/dnnl.h"
#include "ops/batch_norm.h"
#include "ops/concat.h"
#include "ops/conv2d.h"
#include "ops/convert.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/index_select.h"
#include "ops/layer_norm.h"
#include "ops/linear.h"
#include "ops/matmul.h"
#include "ops/mse.h"
#include "ops/permute.h"
#include "ops/pool2d.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/slice.h"
#include "ops/softmax.h"
#include "tests/ops/refusal.h"

namespace plumb::test {
namespace {

TEST(Refusals, OfDtypes) {
  const Refusal table[] = {
      {CALL(conv2d(of({1, 3, 4, 4}), of({2, 3, 1, 1}, kF64))),
       {"conv2d: x is f32 and w is f64; both must be of one floating dtype"}},
      {CALL(conv2d(of({1, 3, 4, 4}), of({2, 3, 1, 1}), of({2}, kBf16))), {"conv2d: b is bf16 (2)"}},
      {CALL(conv2d(of({1, 3, 4, 4}, kI32), of({2, 3, 1, 1}, kI32))), {"conv2d: x is i32"}},
      {CALL(linear(of({4, 3}, kBf16), of({2, 3}))), {"linear: x is bf16 and w is f32"}},
      {CALL(linear(of({4, 3}, kI64), of({2, 3}, kI64))), {"linear: x is i64"}},
      {CALL(matmul(of({4, 3}), of({3, 2}, kF64))),
       {"matmul: a is f32 and b is f64; both must be of one floating dtype"}},
      {CALL(matmul(of({2, 3}, kI32), of({3, 2}, kI32))), {"both must be of one floating dtype"}},
      {CALL(mul(of({4}), of({4}, kF64))), {"mul: a is f32 and b is f64; convert one of them"}},
      {CALL(-of({4}, kI64)),
       {"affine (-x, x * 2, x + 2 and the like): x is i64 (4) nchw;", "or make a tensor of the number"}},
      {CALL(gelu(of({4}, kI32))), {"gelu: x is i32 (4) nchw; convert it to a floating dtype"}},
      {CALL(max_pool2d(of({1, 1, 4, 4}, kI32))), {"max_pool2d: x is i32 (1, 1, 4, 4) nchw"}},
      {CALL(avg_pool2d(of({1, 1, 4, 4}, kI32))), {"avg_pool2d: x is i32 (1, 1, 4, 4) nchw"}},
      {CALL(norm(of({2, 3}, kI32), of({3}))), {"batch_norm: x is i32 (2, 3) nchw"}},
      {CALL(norm(of({2, 3}), of({3}, kF64))), {"batch_norm: gamma is f64 (3) nchw", "f32 (3)"}},
      {CALL(layer_norm(of({2, 3}, kI32))), {"layer_norm: x is i32 (2, 3) nchw; convert it to a floating dtype"}},
      {CALL(layer_norm(of({2, 3}), of({3}, kF64))), {"layer_norm: w is f64 (3) nchw", "f32 (3)"}},
      {CALL(layer_norm(of({2, 3}, kBf16), of({3}), of({3}, kBf16))), {"layer_norm: b is bf16 (3) nchw", "f32 (3)"}},
      {CALL(softmax(of({4}, kI32))), {"softmax: x is i32 (4) nchw; convert it to a floating dtype"}},
      {CALL(cross_entropy(of({2, 3}, kI32), labels(2))), {"cross_entropy: x is i32 (2, 3) nchw"}},
      {CALL(cross_entropy(of({2, 3}), of({2}, kI32))),
       {"cross_entropy: labels are i32 (2) nchw; for logits (2, 3) they must be i64 (2)"}},
      {CALL(mse(of({2}), of({2}, kF64))), {"mse: x is f32 (2) nchw and y is f64 (2) nchw"}},
      {CALL(mse(of({2}, kI32), of({2}, kI32))), {"mse: x is i32 (2) nchw"}},
      {CALL(dropped(of({3}, kI32), 0.5)), {"dropout: x is i32 (3) nchw; convert it to a floating dtype"}},
      {CALL(dropped(of({3}), 0.5, of({2}))), {"dropout: ", "f32 (2) nchw"}},
      {CALL(concat({of({2}), of({2}, kF64)}, 0)), {"concat: tensors are f32 (2) nchw and f64 (2) nchw"}},
      {CALL(index_select(of({2, 3}), 0, of({2}, kI32))),
       {"index_select: the index is i32 (2) nchw; it must be i64 (N)"}},
      {CALL(index_add(of({2}, kI32), 0, labels(2), 3)), {"index_add: x is i32 (2) nchw; convert it"}},
      {CALL(sum(of({4}, kI32))), {"sum: x is i32 (4) nchw; convert it"}},
      {CALL(expand(of({1}), TensorSpec(Shape{3}, kF64))), {"expand: x is f32 (1) nchw"}},
      {CALL(of({1}, kI32).require_grad()), {"require_grad: a tensor of dtype i32"}},
  };
  expect_refused(table);
}

// oneDNN 3 multiplies them on processors with AVX512-FP16: what is not refused is right.
TEST(Refusals, OfProductsOfHalf) {
  static const Shape image{1, 3, 4, 4}, filter{2, 3, 1, 1}, x{4, 3}, w{2, 3}, b{3, 2};
  const std::pair<const char*, Tensor (*)(DType)> products[] = {
      {"conv2d_forward", [](DType t) { return conv2d(of(image, t), of(filter, t)); }},
      {"linear_forward", [](DType t) { return linear(of(x, t), of(w, t)); }},
      {"matmul", [](DType t) { return matmul(of(x, t), of(b, t)); }},
  };
  for (const auto& [kind, product] : products) {
    const auto work = [&] { static_cast<void>(product(kF16)); };
    if (PLUMB_DNNL_V3 && cpu_isa().find("avx512_fp16") != std::string::npos) {
      EXPECT_TRUE(bitwise_equal(to(product(kF16), kF32), product(kF32))) << kind;
    } else {
      EXPECT_TRUE(refused(work, std::string(kind) + ": no kernel") && refused(work, "f16")) << kind;
    }
  }
}

TEST(Refusals, OfHalf) {
  const Refusal table[] = {
      {CALL(add(of({4}, kF16), of({4}, kF16))), {"add: no kernel", "f16"}},
      {CALL(relu(of({4}, kF16))),
       {"relu: no kernel on cpu takes f16 (4) nchw; f16 is for keeping numbers, convert it"}},
      {CALL(max_pool2d(of({1, 1, 4, 4}, kF16))), {"max_pool2d_forward: no kernel", "f16"}},
      {CALL(avg_pool2d(of({1, 1, 4, 4}, kF16))), {"avg_pool2d_forward: no kernel", "f16"}},
      {CALL(norm(of({2, 3}, kF16), of({3}))), {"batch_norm_forward: no kernel", "f16"}},
      {CALL(layer_norm(of({2, 3}, kF16))), {"layer_norm_forward: no kernel", "f16"}},
      {CALL(softmax(of({4}, kF16))), {"softmax_forward: no kernel", "f16"}},
      {CALL(cross_entropy(of({2, 3}, kF16), labels(2))), {"cross_entropy_forward: no kernel", "f16"}},
      {CALL(dropped(of({4}, kF16), 0.5)), {"dropout_forward: no kernel", "f16"}},
      {CALL(index_add(of({4}, kF16), 0, labels(4), 3)), {"index_add: no kernel", "f16"}},
      {CALL(sum(of({4}, kF16))), {"sum: x is f16 (4) nchw; f16 is for keeping numbers, convert it"}},
      {CALL(sum_to(of({2, 4}, kF16), TensorSpec(Shape{4}, kF16))), {"sum_to: x is f16 (2, 4)"}},
  };
  expect_refused(table);
}

TEST(Refusals, OfLayouts) {
  const Refusal table[] = {
      {CALL(conv2d(of({1, 3, 4, 4}), of({2, 3, 1, 1}, kF32, kNhwc))),
       {"conv2d: w is f32 (2, 3, 1, 1) nhwc; it must be (OC, IC / groups, KH, KW), row-major"}},
      {CALL(linear(of({1, 3, 4, 4}, kF32, kNhwc), of({2, 4}))),
       {"linear: x is f32 (1, 3, 4, 4) nhwc; it must be (..., IN), row-major"}},
      {CALL(linear(of({1, 4}), of({2, 4, 1, 1}, kF32, kChwn))), {"linear: w is f32 (2, 4, 1, 1) chwn"}},
      {CALL(matmul(of({1, 1, 2, 2}, kF32, kChwn), of({2, 2}))),
       {"matmul: a is f32 (1, 1, 2, 2) chwn", "convert them to row-major with to(nchw)"}},
      {CALL(add(of({1, 3, 4, 4}), of({1, 3, 4, 4}, kF32, kNhwc))),
       {"add: a is f32 (1, 3, 4, 4) nchw", "nhwc; convert one of them with to(layout)"}},
      {CALL(mul(of({1, 1, 2, 3, 4}), of({1, 2, 3, 4}, kF32, kNhwc))), {"convert b to nchw with to(layout)"}},
      {CALL(mul(of({1, 1, 2, 3, 4}), of({1, 2, 3, 4}, kF32, kChwn))), {"convert b to nchw with to(layout)"}},
      {CALL(mse(of({1, 3, 4, 4}), of({1, 3, 4, 4}, kF32, kNhwc))), {"mse: x is f32 (1, 3, 4, 4) nchw", "nhwc"}},
      {CALL(concat({of({1, 3, 4, 4}), of({1, 3, 4, 4}, kF32, kChwn)}, 1)),
       {"concat: tensors are f32 (1, 3, 4, 4) nchw and f32 (1, 3, 4, 4) chwn"}},
      {CALL(layer_norm(of({1, 3, 4, 4}), of({1, 3, 4, 4}, kF32, kNhwc))),
       {"layer_norm: w is f32 (1, 3, 4, 4) nhwc", "it must be f32 (1, 3, 4, 4) nchw"}},
      {CALL(permute(of({1, 3, 4, 4}, kF32, kNhwc), {3, 2, 1, 0})),
       {"permute: x is f32 (1, 3, 4, 4) nhwc; convert it to row-major with to(nchw)"}},
      {CALL(reshape(of({1, 3, 4, 4}, kF32, kNhwc), Shape{48})), {"reshape: x is f32 (1, 3, 4, 4) nhwc"}},
      {CALL(TensorSpec(Shape{3}, kF32, kNhwc)), {"layout nhwc is for tensors of rank 4", "(3)"}},
      {CALL(to(of({1, 3, 4, 4}), detail::new_pack("blocked", 64))), {"to: x is f32 (1, 3, 4, 4) nchw"}},
  };
  expect_refused(table);
}

TEST(Refusals, OfDevices) {
  const Refusal table[] = {
      {CALL(conv2d(of({1, 3, 4, 4}), on_cuda({2, 3, 1, 1}))), {"conv2d_forward: input 1 is on cuda:"}},
      {CALL(linear(on_cuda({4, 3}), of({2, 3}))), {"linear_forward: input 1 is on cpu and input 0 on cuda:"}},
      {CALL(matmul(of({4, 3}), on_cuda({3, 2}))), {"matmul: input 1 is on cuda:"}},
      {CALL(mul(of({4}), on_cuda({4}))), {"mul: input 1 is on cuda:", " and input 0 on cpu; bring them together"}},
      {CALL(norm(of({2, 3}), on_cuda({3}))), {"batch_norm_forward: input 1 is on cuda:"}},
      {CALL(layer_norm(of({2, 3}), on_cuda({3}))), {"layer_norm_forward: input 1 is on cuda:"}},
      {CALL(cross_entropy(of({2, 3}), on_cuda({2}, kI64))), {"cross_entropy_forward: input 1 is on cuda:"}},
      {CALL(mse(of({2}), on_cuda({2}))), {"mse_forward: input 1 is on cuda:"}},
      {CALL(concat({of({2}), on_cuda({2})}, 0)), {"concat: input 1 is on cuda:"}},
  };
  expect_refused(table);
}

TEST(Refusals, OfDevicesWithoutKernels) {
  if (detail::has_cuda_kernels()) GTEST_SKIP() << "this library has CUDA kernels";
  const Refusal table[] = {
      {CALL(relu(on_cuda({2}))), {"relu: there is no kernel for cuda:0 in this program; bring the tensors to the cpu"}},
      {CALL(max_pool2d(on_cuda({1, 1, 4, 4}))), {"max_pool2d_forward: there is no kernel for cuda:0"}},
      {CALL(softmax(on_cuda({2}))), {"softmax_forward: there is no kernel for cuda:0"}},
      {CALL(slice(on_cuda({2}), {0}, {1})), {"slice: there is no kernel for cuda:0"}},
      {CALL(to(on_cuda({1, 2, 2, 2}), kNhwc)), {"permute: there is no kernel for cuda:0"}},
      {CALL(to(on_cuda({2}), kF64)), {"cast: there is no kernel for cuda:0"}},
  };
  expect_refused(table);
}

TEST(Refusals, OfGradients) {
  const Refusal table[] = {
      {CALL(conv2d_backward_input(of({1, 2, 3, 4}), of({2, 3, 1, 1}), {}, Shape{1, 3, 4, 4})),
       {"conv2d_backward_input: dy is f32 (1, 2, 3, 4) nchw", "f32 (1, 2, 4, 4) nchw"}},
      {CALL(conv2d_backward_input(of({1, 2, 4, 4}, kF32, kNhwc), of({2, 3, 1, 1}), {}, Shape{1, 3, 4, 4})),
       {"conv2d_backward_input: dy is f32 (1, 2, 4, 4) nhwc"}},
      {CALL(conv2d_backward_weight(of({2, 2, 4, 4}), of({1, 3, 4, 4}), {}, Shape{2, 3, 1, 1})),
       {"conv2d_backward_weight: dy is f32 (2, 2, 4, 4) nchw", "f32 (1, 2, 4, 4) nchw"}},
      {CALL(linear_backward_input(of({4, 3}), of({2, 3}))),
       {"linear_backward_input: dy is f32 (4, 3) nchw", "f32 (2, 3) nchw"}},
      {CALL(linear_backward_weight(of({4, 2}), of({5, 3}))),
       {"linear_backward_weight: dy is f32 (4, 2) nchw", "f32 (5, 3) nchw"}},
      {CALL(softmax_backward(of({4, 3}), of({3, 4}), {1, 0})),
       {"softmax_backward: dy is f32 (4, 3) nchw and y is f32 (3, 4) nchw"}},
      {CALL(softmax_backward(of({4, 3}), of({4, 3}), {2, 0})), {"softmax_backward: dimension 2 of y (4, 3)"}},
      {CALL(cross_entropy_backward(of({2}), of({2, 3}), labels(2), of({2, 2}), LossReduction::kMean)),
       {"cross_entropy_backward: dy is f32 (2) nchw", "f32 () nchw"}},
      {CALL(cross_entropy_backward(of({}), of({2, 3}), labels(2), of({2}), LossReduction::kMean)),
       {"cross_entropy_backward: the statistics are f32 (2) nchw", "f32 (2, 2) nchw"}},
      {CALL(unary_backward(functors::Relu{}, of({10}), of({1}))),
       {"relu: dy is f32 (10) nchw and what was kept is f32 (1) nchw; they must be of one spec"}},
      {CALL(dropout_backward(of({2}), of({2}, kU8), 1.0)), {"dropout_backward: p is 1; it must be at least 0"}},
      {CALL(dropout_backward(of({5}), of({5}), 0.5)), {"dropout_backward: the mask is f32 (5) nchw"}},
      {CALL(dropout_backward(of({2}), of({3}, kU8), 0.5)),
       {"dropout_backward: the mask is u8 (3) nchw", "u8 (2) nchw"}},
  };
  expect_refused(table);
}

}  // namespace
}  // namespace plumb::test
