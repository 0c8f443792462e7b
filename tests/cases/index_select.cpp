// Cases for index_select and index_add, each of which is the other's gradient.
#include "ops/index_select.h"
#include "tests/cases/op_case.h"

namespace plumb::test {
namespace {

CaseInput index_of(int64_t n, int64_t slices) {
  return {.spec = TensorSpec(Shape{n}, DType::kI64),
          .low = 0,
          .high = static_cast<double>(std::max<int64_t>(1, slices) - 1)};
}

// Slices, and how many of them the index names: fewer, more, so that some are named twice, and none.
struct Work {
  Shape x;
  int dim;
  int64_t n;
};
std::vector<Work> works() {
  std::vector<Work> all = {{{33}, 0, 17},           {{33}, 0, 0},      {{1}, 0, 31},         {{1025}, -1, 513},
                           {{5, 33}, 0, 17},        {{33, 5}, 1, 3},   {{31, 17}, -2, 65},   {{3, 1025}, 1, 512},
                           {{65, 3}, 0, 33},        {{0, 33}, 1, 5},   {{3, 2, 1030}, 1, 5}, {{2, 3, 4, 5, 6}, 2, 3},
                           {{2, 3, 4, 5, 6}, 4, 9}, {{2500}, 0, 9000}, {{3, 5}, 0, 2100},    {{1}, 0, 16}};
  // On a GPU, the most that one block makes lists of, and one more; short lists and long ones; and slices of so many
  // pieces that a thread has several.
  for (const Work& w : std::vector<Work>{{{6144}, 0, 8192},
                                         {{6145}, 0, 70},
                                         {{3, 2}, 0, 8193},
                                         {{70, 2}, 0, 8000},
                                         {{7, 300}, 0, 400},
                                         {{2, 3, 520}, 1, 5},
                                         {{5, 8, 33}, 0, 9},
                                         {{3, 65, 8}, 0, 4}})
    all.push_back(w);
  for (int dim = 0; dim < 4; ++dim) {
    all.push_back({{5, 10, 3, 7}, dim, 3});
    all.push_back({{2, 17, 5, 6}, dim, 33});
    all.push_back({{3, 5, 4, 16}, dim, 7});
  }
  return all;
}

OpCase index_select_case() {
  OpCase c{.name = "index_select", .exact = true, .dtypes = {DType::kF32, DType::kBf16, DType::kF16}};
  for (const Work& w : works()) {
    c.variants.push_back(
        {.name = message("{} of {} along {}", w.n, w.x, w.dim),
         .inputs = {{.spec = w.x}, index_of(w.n, w.x[w.dim])},
         .run = [dim = w.dim](std::span<const Tensor> in) { return index_select(in[0], dim, in[1]); }});
  }
  return c;
}

OpCase index_add_case() {
  OpCase c{.name = "index_add", .exact = true};
  for (const Work& w : works()) {
    const int64_t slices = w.x[w.dim];
    c.variants.push_back(
        {.name = message("{} to {} along {}", w.n, w.x, w.dim),
         .inputs = {{.spec = w.x.with(w.dim < 0 ? w.dim + w.x.rank() : w.dim, w.n)}, index_of(w.n, slices)},
         .run = [=, dim = w.dim](std::span<const Tensor> in) { return index_add(in[0], dim, in[1], slices); },
         .terms = std::max(1.0, static_cast<double>(w.n) / static_cast<double>(slices))});
  }
  return c;
}

const RegisterCase selecting(index_select_case());
const RegisterCase adding(index_add_case());

}  // namespace
}  // namespace plumb::test
