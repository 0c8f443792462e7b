// Cases for to(layout) and to(dtype).
#include "ops/convert.h"
#include "tests/cases/op_case.h"

namespace plumb::test {
namespace {

OpCase layout_case(Layout to_layout) {
  OpCase c{.name = "to_" + to_string(to_layout), .exact = true, .dtypes = {DType::kF32, DType::kBf16, DType::kF16}};
  for (const Shape& x : {Shape{2, 10, 5, 7}, Shape{3, 17, 31, 33}, Shape{1, 3, 8, 8}, Shape{33, 16, 1, 1},
                         Shape{16, 64, 4, 4}, Shape{1, 1, 1, 1025}, Shape{5, 35, 20, 21}, Shape{0, 10, 3, 3}}) {
    c.variants.push_back({.name = to_string(x), .inputs = {{.spec = x}}, .run = [=](std::span<const Tensor> in) {
                            return to(in[0], to_layout);
                          }});
  }
  return c;
}

// Rounding has no slope: the gradient, which is rounded too, is a matter of tests/ops/cast_test.cpp.
OpCase cast_case() {
  OpCase c{.name = "cast", .exact = true, .differentiable = false, .dtypes = {DType::kF32, DType::kBf16, DType::kF16}};
  const DType every[] = {DType::kF32, DType::kF64, DType::kF16, DType::kBf16, DType::kI32, DType::kI64, DType::kU8};
  for (const DType target : every) {
    for (const DType source : {DType::kF32, DType::kI32, DType::kI64, DType::kU8}) {
      for (const Shape& x : {Shape{2, 10, 5, 7}, Shape{0}, Shape{1}, Shape{31}, Shape{33}, Shape{1025}}) {
        c.variants.push_back(
            {.name = message("{} {} to {}", is_floating(source) ? "floats" : to_string(source), x, target),
             .inputs = {{.spec = TensorSpec(x, source), .low = 0, .high = 120}},
             .run = [=](std::span<const Tensor> in) { return to(in[0], target); }});
      }
    }
  }
  return c;
}

const RegisterCase all[] = {RegisterCase(layout_case(Layout::kNchw)), RegisterCase(layout_case(Layout::kNhwc)),
                            RegisterCase(layout_case(Layout::kChwn)), RegisterCase(cast_case())};

}  // namespace
}  // namespace plumb::test
