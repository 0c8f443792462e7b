// Cases for dropout: the same mask in every layout and run, since each run begins with the same generator.
#include "ops/dropout.h"
#include "tests/cases/op_case.h"

namespace plumb::test {
namespace {

const RegisterCase dropout_case([] {
  OpCase c{.name = "dropout"};
  const auto add = [&](const Shape& x, double p) {
    c.variants.push_back(
        {.name = message("{} p {}", x, p), .inputs = {{.spec = x}}, .run = [p](std::span<const Tensor> in) {
           Generator generator(42);
           return dropout(in[0], p, generator);
         }});
  };
  for (const int64_t n : {0, 1, 31, 33, 1025, 70001}) add({n}, 0.5);
  for (const double p : {0.0, 0.1, 0.5, 0.9}) add({2, 10, 5, 7}, p);
  add({3, 17, 3, 3}, 0.5);
  add({4, 17, 33, 31}, 0.5);
  add({33, 31}, 0.25);
  // Blocks of words in pieces of neighbouring channels, or batches, and more of them than the device takes at once.
  for (const Shape& x : {Shape{2, 16, 4, 3}, Shape{8, 24, 2, 2}, Shape{2, 64, 30, 10}}) add(x, 0.5);
  return c;
}());

}  // namespace
}  // namespace plumb::test
