#include "ops/matmul.h"

#include "bench/raw_rows.h"
#include "ops/random.h"

namespace plumb::bench {
namespace {

void add(const Axes& axes) {
  for (const MatmulProblem& m : axes.problems.matmul) {
    for (const DType t : axes.dtypes) {
      const TensorSpec a(m.a, t), b(m.b, t);
      const MatmulParams p{m.transpose_a, m.transpose_b};
      const TensorSpec y = matmul_output(p, a, b);
      const Path path("matmul", "forward", a, m.name);
      const Job work = job<Matmul>(p, {a, b}, {y});
      add_kernel_rows(path, work);
      add_eager_row(path, work, [=] {
        return [p, x = uniform(a, -1, 1, 1), w = uniform(b, -1, 1, 2)] { matmul(x, w, p.transpose_a, p.transpose_b); };
      });
      add_raw_rows(path, work, measure::RawMatmul{a, b, y, m.transpose_a, m.transpose_b});
    }
  }
}

const RowSource rows(&add);

}  // namespace
}  // namespace plumb::bench
