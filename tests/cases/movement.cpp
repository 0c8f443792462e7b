// Cases for the ops that only move elements: slice, pad, pad2d, concat, permute, reshape, flatten, expand.
#include "ops/concat.h"
#include "ops/pad2d.h"
#include "ops/permute.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/slice.h"
#include "tests/cases/op_case.h"

namespace plumb::test {
namespace {

OpCase moving(std::string name) {
  return {.name = std::move(name), .exact = true, .dtypes = {DType::kF32, DType::kBf16, DType::kF16}};
}
void add(OpCase& c, std::string name, std::vector<Shape> shapes, Function run, bool activation = true) {
  OpVariant v{.name = std::move(name), .run = std::move(run)};
  for (const Shape& s : shapes) v.inputs.push_back({.spec = s, .activation = activation});
  c.variants.push_back(std::move(v));
}

OpCase slice_case() {
  OpCase c = moving("slice");
  const auto part = [&](const Shape& x, const Shape& begin, const Shape& extents) {
    add(c, message("{} of {} at {}", extents, x, begin), {x},
        [=](std::span<const Tensor> in) { return slice(in[0], begin, extents); });
  };
  part({1025}, {1}, {1023});
  part({33}, {32}, {1});
  part({33}, {5}, {0});
  part({5, 33}, {1, 0}, {3, 33});
  part({5, 33}, {0, 1}, {5, 31});
  part({2, 3, 4, 5, 6}, {1, 1, 0, 2, 1}, {1, 2, 4, 3, 5});
  part({2, 10, 5, 7}, {0, 0, 0, 0}, {2, 10, 5, 7});
  part({2, 10, 5, 7}, {1, 0, 0, 0}, {1, 10, 5, 7});
  part({2, 10, 5, 7}, {0, 3, 0, 0}, {2, 5, 5, 7});
  part({3, 17, 5, 7}, {0, 0, 1, 2}, {3, 17, 3, 4});
  part({3, 17, 5, 7}, {1, 16, 4, 6}, {2, 1, 1, 1});
  part({2, 16, 9, 8}, {0, 0, 8, 0}, {2, 16, 1, 8});
  part({5, 17, 35, 33}, {0, 0, 1, 1}, {5, 17, 33, 31});
  part({3, 8, 10, 36}, {1, 4, 1, 4}, {2, 4, 8, 16});
  part({3, 16, 10, 34}, {0, 0, 1, 1}, {3, 16, 8, 32});
  part({3, 5, 8, 9}, {0, 0, 1, 1}, {3, 5, 6, 5});  // pieces of three runs
  part({4, 9, 5, 5}, {0, 0, 1, 1}, {4, 9, 3, 2});
  return c;
}

OpCase pad_case() {
  OpCase c = moving("pad");
  const auto into = [&](const Shape& x, const Shape& begin, const Shape& extents, double value) {
    add(c, message("{} into {} at {}", x, extents, begin), {x},
        [=](std::span<const Tensor> in) { return pad(in[0], begin, extents, value); });
  };
  into({31}, {1}, {33}, 0);
  into({0}, {2}, {5}, 1.5);
  into({5, 10}, {1, 2}, {7, 17}, -2);
  into({2, 3, 4, 5, 6}, {0, 1, 0, 2, 1}, {2, 5, 4, 8, 7}, 0);
  into({2, 10, 5, 7}, {0, 3, 0, 0}, {2, 17, 5, 7}, 0);
  into({2, 10, 5, 7}, {1, 0, 2, 0}, {4, 10, 9, 7}, 3);
  return c;
}

OpCase pad2d_case() {
  OpCase c = moving("pad2d");
  const auto border = [&](const Shape& x, Sides<int64_t> padding, double value = 0) {
    add(c, message("{} by {} {} {} {}", x, padding[0], padding[1], padding[2], padding[3]), {x},
        [=](std::span<const Tensor> in) { return pad2d(in[0], padding, value); });
  };
  border({2, 3, 5, 7}, {0, 0, 0, 0});
  border({2, 16, 5, 7}, {1, 1, 1, 1});
  border({2, 17, 5, 7}, {2, 0, 1, 3});
  border({3, 10, 1, 1}, {0, 2, 0, 0}, -1.5);
  border({1, 3, 4, 31}, {0, 0, 1, 1});
  border({0, 3, 4, 4}, {1, 1, 1, 1});
  border({2, 3, 0, 4}, {1, 1, 1, 1});
  border({4, 17, 31, 31}, {1, 1, 1, 1});
  border({2, 16, 6, 24}, {1, 1, 8, 8}, 2.5);
  border({2, 8, 4, 20}, {0, 1, 3, 2}, -1.5);
  return c;
}

OpCase concat_case() {
  OpCase c = moving("concat");
  const auto joined = [&](std::vector<Shape> shapes, int dim) {
    std::string name = message("along {}:", dim);
    for (const Shape& s : shapes) name += " " + to_string(s);
    add(c, name, shapes, [dim](std::span<const Tensor> in) { return concat(in, dim); });
  };
  joined({{31}, {2}, {1025}}, 0);
  joined({{5, 3}, {5, 10}}, -1);
  joined({{5, 3}, {0, 3}, {2, 3}}, 0);
  joined({{2, 10, 5, 7}}, 1);
  joined({{2, 3, 4, 5, 6}, {2, 3, 1, 5, 6}}, 2);
  for (int dim = 0; dim < 4; ++dim) {
    const Shape a{2, 10, 3, 5};
    joined({a, a.with(dim, 1), a.with(dim, 17)}, dim);
  }
  joined({{2, 0, 3, 5}, {2, 16, 3, 5}}, 1);
  joined({{3, 17, 31, 33}, {3, 10, 31, 33}}, 1);
  joined({{3, 8, 4, 6}, {3, 16, 4, 6}, {3, 2, 4, 6}}, 1);
  joined(std::vector<Shape>(10, {2, 8, 1, 3}), 1);  // more than a launch takes
  return c;
}

OpCase permute_case() {
  OpCase c = moving("permute");
  const auto ordered = [&](const Shape& x, std::initializer_list<int> dims) {
    std::string name = to_string(x) + " by";
    for (const int d : dims) name += " " + std::to_string(d);
    const std::vector<int> order(dims);
    add(
        c, name, {x}, [order](std::span<const Tensor> in) { return permute(in[0], order); }, false);
  };
  ordered({33}, {0});
  ordered({33, 31}, {1, 0});
  ordered({1025, 3}, {-1, 0});
  ordered({3, 17, 33}, {2, 1, 0});
  ordered({3, 17, 33}, {0, 2, 1});
  ordered({2, 10, 5, 7}, {0, 2, 3, 1});
  ordered({2, 10, 5, 7}, {3, 0, 1, 2});
  ordered({2, 3, 4, 5, 6}, {4, 2, 0, 1, 3});
  ordered({0, 3, 4}, {1, 2, 0});
  ordered({17, 65, 130}, {2, 0, 1});
  ordered({66, 34}, {1, 0});
  ordered({3, 130, 66}, {0, 2, 1});
  ordered({2, 10, 5, 12}, {3, 0, 2, 1});
  // Tiles of several dimensions on one side and on both, of odd extents and of even ones.
  ordered({70, 9, 3, 5}, {3, 2, 1, 0});
  ordered({66, 8, 6, 6}, {3, 2, 1, 0});
  ordered({3, 5, 3, 5, 7}, {4, 3, 2, 1, 0});
  ordered({4, 6, 4, 6, 6}, {4, 3, 2, 1, 0});
  ordered({3, 70, 9, 9}, {0, 3, 2, 1});  // several matrices of such tiles
  return c;
}

OpCase reshape_case() {
  OpCase c = moving("reshape");
  const auto into = [&](const Shape& x, const Shape& y) {
    add(
        c, message("{} to {}", x, y), {x}, [y](std::span<const Tensor> in) { return reshape(in[0], y); }, false);
  };
  into({1025}, {5, 205});
  into({2, 10, 5, 7}, {20, 35});
  into({1}, {});
  into({0, 3}, {7, 0, 2});
  into({3, 17}, {3, 17});
  for (const Shape& x : {Shape{2, 10, 5, 7}, Shape{3, 17, 1, 1}, Shape{0, 3, 4, 4}, Shape{33, 31}, Shape{5}}) {
    add(c, message("flatten {}", x), {x}, [](std::span<const Tensor> in) { return flatten(in[0]); });
  }
  return c;
}

OpCase expand_case() {
  OpCase c = moving("expand");
  const auto to_shape = [&](const Shape& x, const Shape& y) {
    const double copies = static_cast<double>(y.numel()) / static_cast<double>(std::max<int64_t>(1, x.numel()));
    add(c, message("{} to {}", x, y), {x}, [y](std::span<const Tensor> in) {
      return expand(in[0], TensorSpec(y, in[0].dtype(), y.rank() == in[0].rank() ? in[0].layout() : Layout::kNchw));
    });
    c.variants.back().terms = std::max(1.0, copies);
  };
  to_shape({}, {33});
  to_shape({1}, {1025});
  to_shape({31, 1}, {31, 33});
  to_shape({17}, {3, 5, 17});
  to_shape({2, 10, 1, 1}, {2, 10, 5, 7});
  to_shape({1, 1, 5, 7}, {3, 10, 5, 7});
  to_shape({1, 16, 1, 1}, {3, 16, 6, 6});
  to_shape({3, 1, 33}, {3, 20, 33});
  to_shape({1, 3}, {0, 3});
  return c;
}

// The same kernels move the dtypes that have no gradient.
OpCase integer_case() {
  OpCase c{.name = "movement_of_integers", .exact = true, .differentiable = false};
  for (const DType t : {DType::kI32, DType::kI64, DType::kU8}) {
    const auto add_one = [&](const std::string& name, const Shape& x, Function run) {
      c.variants.push_back({.name = message("{} {} {}", name, t, x),
                            .inputs = {{.spec = TensorSpec(x, t), .low = t == DType::kU8 ? 0.0 : -200.0, .high = 200}},
                            .run = std::move(run)});
    };
    const Shape x{2, 10, 5, 7};
    add_one("slice", x, [](std::span<const Tensor> in) { return slice(in[0], {0, 3, 1, 2}, {2, 5, 4, 3}); });
    add_one("slice", {3, 4, 5, 13}, [](std::span<const Tensor> in) {
      return slice(in[0], {0, 0, 1, 1}, {3, 4, 3, 9});  // of bytes, pieces of three runs
    });
    add_one("pad2d", x, [](std::span<const Tensor> in) { return pad2d(in[0], {1, 0, 2, 1}, 3); });
    add_one("concat", x, [](std::span<const Tensor> in) { return concat({in[0], in[0]}, 1); });
    add_one("flatten", x, [](std::span<const Tensor> in) { return flatten(in[0]); });
    for (const Shape& matrix : {Shape{33, 31}, Shape{66, 31}, Shape{97, 65}}) {
      add_one("permute", matrix, [](std::span<const Tensor> in) { return permute(in[0], {1, 0}); });
    }
  }
  return c;
}

const RegisterCase all[] = {RegisterCase(slice_case()),  RegisterCase(pad_case()),     RegisterCase(pad2d_case()),
                            RegisterCase(concat_case()), RegisterCase(permute_case()), RegisterCase(reshape_case()),
                            RegisterCase(expand_case()), RegisterCase(integer_case())};

}  // namespace
}  // namespace plumb::test
