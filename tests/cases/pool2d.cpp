// Cases for max_pool2d, avg_pool2d and global_avg_pool2d: windows that meet, overlap and leave gaps, paddings of every
// side, windows that hang over and images that they do not cover.
#include "ops/pool2d.h"
#include "tests/cases/op_case.h"

namespace plumb::test {
namespace {

struct Window {
  std::string name;
  Shape x;
  Pool2dParams p{};
};

std::vector<Window> windows() {
  return {
      {"2x2", {2, 16, 8, 10}},
      {"2x2_rows_left_over", {2, 10, 7, 9}},
      {"2x2_c3_n33", {33, 3, 6, 6}},
      {"2x2_c17", {3, 17, 4, 33}},
      {"2x2_quarter_rows", {2, 2, 7, 4}},
      {"2x2_padded", {4, 16, 9, 7}, {.padding = 1}},
      {"2x2_padded_below", {16, 2, 5, 8}, {.padding = {0, 1, 0, 1}}},
      {"2x2_c6_n2", {2, 6, 5, 5}, {.padding = 1}},
      {"2x2_many", {8, 16, 18, 25}},
      {"2x2_many_rows", {4, 16, 18, 32}},
      {"3x3_many", {8, 16, 18, 17}, {.kernel = 3, .stride = 2, .padding = 1}},
      {"3x3_overlap", {2, 10, 9, 8}, {.kernel = 3, .stride = 2}},
      {"3x3_overlap_padded", {2, 17, 9, 8}, {.kernel = 3, .stride = 2, .padding = 1}},
      {"3x3_same", {2, 16, 6, 7}, {.kernel = 3, .stride = 1, .padding = 1}},
      {"2x2_gaps", {2, 10, 11, 11}, {.stride = 5}},
      {"3x2_uneven_gaps", {2, 17, 11, 13}, {{3, 2}, {4, 3}, {1, 0, 0, 1}}},
      {"1x1", {2, 3, 5, 5}, {.kernel = 1}},
      {"1x1_stride2", {2, 3, 5, 6}, {.kernel = 1, .stride = 2}},
      {"whole_image", {2, 17, 6, 6}, {.kernel = 6}},
      {"mixed", {2, 10, 9, 11}, {{3, 2}, {1, 3}, {2, 0, 1, 1}}},
      {"top_and_left_only", {2, 10, 6, 6}, {{3, 3}, {2, 2}, {2, 0, 1, 0}}},
      {"bottom_and_right_only", {2, 10, 6, 6}, {{3, 3}, {2, 2}, {0, 1, 0, 2}}},
      {"window_over_255", {1, 3, 18, 17}, {{17, 16}, {1, 1}, {3, 2, 0, 1}}},
      {"one_pixel_padded", {2, 3, 1, 1}, {.kernel = 3, .stride = 2, .padding = 1}},
      {"one_row_1025", {1, 1, 1, 1025}, {{1, 2}, {1, 2}, {0, 0, 0, 1}}},
      {"several_threads", {3, 17, 33, 41}, {.kernel = 3, .stride = 2, .padding = 1}},
      {"less_than_16_bytes", {1, 1, 1, 3}, {{1, 2}, {1, 2}}},
      {"no_images", {0, 10, 6, 6}},
      {"no_channels", {2, 0, 6, 6}},
  };
}

OpCase pool_case(std::string name, Tensor (*pool)(const Tensor&, const Pool2dParams&), bool is_mean) {
  OpCase c{.name = std::move(name), .exact = !is_mean};
  for (const Window& w : windows()) {
    for (const int64_t include : {1, 0}) {
      if (!include && !is_mean) continue;
      Pool2dParams p = w.p;
      p.count_include_pad = include;
      c.variants.push_back({.name = w.name + (include ? "" : "_exclude_pad"),
                            .inputs = {{.spec = w.x}},
                            .run = [=](std::span<const Tensor> in) { return pool(in[0], p); },
                            .terms = is_mean ? static_cast<double>(p.kernel[0]) * p.kernel[1] : 1});
    }
  }
  return c;
}

OpCase global_case() {
  OpCase c{.name = "global_avg_pool2d"};
  for (const Shape& x : {Shape{2, 16, 7, 7}, Shape{3, 17, 1, 1}, Shape{1, 3, 31, 33}, Shape{33, 10, 2, 3}}) {
    c.variants.push_back({.name = to_string(x),
                          .inputs = {{.spec = x}},
                          .run = [](std::span<const Tensor> in) { return global_avg_pool2d(in[0]); },
                          .terms = static_cast<double>(x[2] * x[3])});
  }
  return c;
}

const RegisterCase max_case(pool_case("max_pool2d", &max_pool2d, false));
const RegisterCase avg_case(pool_case("avg_pool2d", &avg_pool2d, true));
const RegisterCase whole_case(global_case());

}  // namespace
}  // namespace plumb::test
