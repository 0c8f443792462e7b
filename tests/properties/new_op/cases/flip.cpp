// Cases for flip.
#include "ops/flip.h"

#include "tests/cases/op_case.h"

namespace plumb::test {
namespace {

const RegisterCase flip_case([] {
  OpCase c{.name = "flip", .exact = true};
  for (const Shape& x : {Shape{0}, Shape{1}, Shape{31}, Shape{33}, Shape{1025, 3}, Shape{2, 10, 5, 7}, Shape{3, 0}}) {
    c.variants.push_back({.name = to_string(x),
                          .inputs = {{.spec = x, .activation = false}},
                          .run = [](std::span<const Tensor> in) { return flip(in[0]); }});
  }
  return c;
}());

}  // namespace
}  // namespace plumb::test
