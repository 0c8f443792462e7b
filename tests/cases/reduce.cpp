// Cases for sum, mean, max and argmax.
#include "ops/reduce.h"
#include "ops/elementwise.h"
#include "tests/cases/op_case.h"

namespace plumb::test {
namespace {

using Reduce = Tensor (*)(const Tensor&, const Dims&, bool);

// Shapes and dimensions that meet every kernel: runs and rows, long and short, cut and whole.
template <class Dimensions>
void add(OpCase& c, Reduce reduce, const Shape& x, Dimensions dims, bool keepdims) {
  int64_t terms = 1;
  std::string name = to_string(x) + " over";
  for (const int d : dims) {
    terms *= x[d];
    name += " " + std::to_string(d);
  }
  c.variants.push_back({.name = name + (keepdims ? " kept" : ""),
                        .inputs = {{.spec = x}},
                        .run = [=](std::span<const Tensor> in) { return reduce(in[0], dims, keepdims); },
                        .terms = static_cast<double>(terms)});
}

void add_all(OpCase& c, Reduce reduce, bool one_dimension) {
  const Dims kFirst = 0, kSecond = 1, kLast = -1, kPixels = {2, 3}, kBatch = {0, 2, 3}, kOuter = {0, 1},
             kAll = {0, 1, 2, 3}, kMiddle = {1, 2};
  for (const int64_t n : {1, 31, 33, 225, 1025}) add(c, reduce, {n}, kFirst, false);
  add(c, reduce, {70001}, kFirst, true);
  add(c, reduce, {3, 33}, kFirst, false);
  add(c, reduce, {33, 3}, kLast, false);
  add(c, reduce, {2, 17, 5}, kSecond, true);
  add(c, reduce, {9, 1100}, kLast, false);
  add(c, reduce, {0, 5}, kLast, false);
  add(c, reduce, {1100, 8}, kLast, false);  // several lines a warp, in pieces and not
  add(c, reduce, {1100, 7}, kLast, false);
  add(c, reduce, {40, 2056}, kFirst, false);  // pieces of lines
  add(c, reduce, {320, 88}, kFirst, false);   // and their terms in parts, of many lines and of few
  add(c, reduce, {2048, 8}, kFirst, false);
  add(c, reduce, {30, 20}, kFirst, false);  // half a piece of two-byte elements
  add(c, reduce, {7, 3, 12}, kSecond, false);
  for (const bool keepdims : {false, true}) {
    add(c, reduce, {2, 10, 5, 7}, kSecond, keepdims);
    add(c, reduce, {2, 17, 3, 4}, kLast, keepdims);
  }
  if (one_dimension) return;
  for (const int64_t rows : {3, 40}) add(c, reduce, {rows, 4100}, kFirst, false);  // tiles of columns, pieces of rows
  for (const bool keepdims : {false, true}) {
    add(c, reduce, {3, 10, 5, 7}, kPixels, keepdims);
    add(c, reduce, {3, 10, 5, 7}, kBatch, keepdims);
    add(c, reduce, {3, 10, 5, 7}, kOuter, keepdims);
    add(c, reduce, {3, 10, 5, 7}, kMiddle, keepdims);
    add(c, reduce, {3, 10, 5, 7}, kAll, keepdims);
  }
  // Runs of pieces, and of a line in parts.
  for (const Dims& dims : {kPixels, kBatch, kOuter, kMiddle, kAll}) add(c, reduce, {3, 8, 4, 6}, dims, false);
  add(c, reduce, {9, 2, 32, 36}, kBatch, false);
  for (const Dims& dims : {Dims{0, 2, 4}, Dims{1, 3, 5}}) add(c, reduce, {2, 3, 2, 3, 2, 8}, dims, true);
}

OpCase reduce_case(std::string name, Reduce reduce, bool exact) {
  OpCase c{.name = std::move(name), .exact = exact};
  add_all(c, reduce, false);
  return c;
}

OpCase argmax_case() {
  OpCase c{.name = "argmax", .exact = true, .differentiable = false};
  add_all(c, &argmax, true);
  c.variants.push_back({.name = "everything",
                        .inputs = {{.spec = Shape{3, 10, 5, 7}}},
                        .run = [](std::span<const Tensor> in) { return argmax(in[0]); }});
  // Of equals, the first; and NaN, of which a logarithm has many.
  c.variants.push_back({.name = "everything, equals",
                        .inputs = {{.spec = Shape{3, 8, 4, 6}}},
                        .run = [](std::span<const Tensor> in) { return argmax(neg(relu(in[0]))); }});
  for (const int dim : {0, 1, 2, 3}) {
    c.variants.push_back({.name = "equals along " + std::to_string(dim),
                          .inputs = {{.spec = Shape{6, 8, 4, 16}}},
                          .run = [dim](std::span<const Tensor> in) { return argmax(neg(relu(in[0])), {dim}); }});
    c.variants.push_back({.name = "NaN along " + std::to_string(dim),
                          .inputs = {{.spec = Shape{6, 8, 4, 16}}},
                          .run = [dim](std::span<const Tensor> in) { return argmax(log(in[0]), {dim}); }});
  }
  return c;
}

const RegisterCase sum_case(reduce_case("sum", &sum, true));
const RegisterCase mean_case(reduce_case("mean", &mean, false));
const RegisterCase max_case(reduce_case("max", &max, false));
const RegisterCase arg_case(argmax_case());

}  // namespace
}  // namespace plumb::test
