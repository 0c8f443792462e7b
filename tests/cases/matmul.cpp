// Cases for matmul: transposes, batches, broadcasting, vectors of every remainder.
#include "ops/matmul.h"
#include "tests/cases/op_case.h"

namespace plumb::test {
namespace {

void add(OpCase& c, const Shape& a, const Shape& b, bool transpose_a = false, bool transpose_b = false) {
  const int64_t k = transpose_a ? a[-2] : a[-1];
  c.variants.push_back(
      {.name = to_string(a) + (transpose_a ? "t " : " ") + to_string(b) + (transpose_b ? "t" : ""),
       .inputs = {{.spec = a, .activation = false}, {.spec = b, .activation = false}},
       .run = [=](std::span<const Tensor> in) { return matmul(in[0], in[1], transpose_a, transpose_b); },
       .terms = static_cast<double>(k)});
}

const RegisterCase matmul_case([] {
  OpCase c{.name = "matmul", .exact = true};
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      add(c, ta ? Shape{33, 17} : Shape{17, 33}, tb ? Shape{31, 33} : Shape{33, 31}, ta, tb);
      add(c, ta ? Shape{19, 5} : Shape{5, 19}, tb ? Shape{259, 19} : Shape{19, 259}, ta,
          tb);  // columns for all threads
      add(c, ta ? Shape{3, 10, 5} : Shape{3, 5, 10}, tb ? Shape{3, 7, 10} : Shape{3, 10, 7}, ta, tb);
    }
  }
  add(c, {1, 1}, {1, 1});
  add(c, {1, 1025}, {1025, 1});
  add(c, {1025, 3}, {3, 2});
  add(c, {70, 512}, {512, 100});       // a long sum of many outputs
  add(c, {2, 3, 4, 5}, {5, 6});        // b for every batch
  add(c, {4, 5}, {2, 3, 5, 6});        // a for every batch
  add(c, {2, 1, 4, 5}, {1, 3, 5, 6});  // both broadcast
  add(c, {0, 5}, {5, 3});
  add(c, {5, 0}, {0, 3});  // an empty sum is zero
  add(c, {0, 4, 5}, {0, 5, 6});
  return c;
}());

}  // namespace
}  // namespace plumb::test
