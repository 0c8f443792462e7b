// Cases for softmax and log_softmax: along rows, columns and planes, short and long.
#include "ops/softmax.h"
#include "tests/cases/op_case.h"

namespace plumb::test {
namespace {

OpCase softmax_case(std::string name, Tensor (*op)(const Tensor&, int)) {
  OpCase c{.name = std::move(name), .tolerance = 16};
  const auto add = [&](const Shape& x, int dim, double range = 4) {
    c.variants.push_back({.name = message("{} along {}, up to {}", x, dim, range),
                          .inputs = {{.spec = x, .low = -range, .high = range}},
                          .run = [=](std::span<const Tensor> in) { return op(in[0], dim); },
                          .terms = static_cast<double>(x[dim])});
  };
  for (const int64_t n : {1, 2, 10, 17, 31, 33, 64, 100, 301, 515, 1000, 1025}) add({5, n}, -1);
  // Many short ones, of which some are computed together, side by side or each in vectors, and some are left over.
  for (const int64_t n : {1, 8, 10, 17}) add({18, n}, -1, 8);
  for (const int64_t n : {31, 32, 33, 100, 129, 255, 256, 257}) add({18, n}, -1);
  for (const int64_t n : {7, 40}) add({18, n}, -1, 100);
  // Of the longest that registers hold, and longer, in pieces and one by one.
  for (const int64_t n : {4096, 4097, 4104, 8200}) add({3, n}, -1);
  add({1025}, 0);
  add({33, 10}, 0);
  add({3, 17, 5}, 1);
  for (const int dim : {0, 1, 2, -1}) add({2, 10, 5, 7}, dim);
  add({2, 1, 3, 17}, 1);
  // Side by side in pieces: by a few threads, by many, and too long; and more of them than the blocks take at once.
  for (const Shape& x : {Shape{3, 64, 32}, Shape{2, 300, 16}, Shape{2, 700, 8}, Shape{2, 8, 640}}) add(x, 1);
  for (const Shape& x : {Shape{3, 64, 20}, Shape{2, 300, 12}}) add(x, 1);  // half a piece of two-byte elements
  add({300, 5}, 0);
  add({5, 10}, -1, 60);  // sums of which one term is all
  add({5, 17, 31, 33}, 1);
  add({1025, 33}, -1);
  add({33, 300}, 0);
  add({0, 10}, -1);
  add({3, 0}, 0);
  return c;
}

const RegisterCase plain_case(softmax_case("softmax", &softmax));
const RegisterCase log_case(softmax_case("log_softmax", &log_softmax));

}  // namespace
}  // namespace plumb::test
