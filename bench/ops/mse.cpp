// The mean squared error, which is a subtraction, a square and a mean: the public op beside the copy floor of its
// inputs.
#include "ops/mse.h"

#include "bench/job.h"
#include "ops/random.h"

namespace plumb::bench {
namespace {

Work described(const TensorSpec& x) {
  Work w;
  w.dtype = x.dtype;
  w.read_bytes = 2 * x.bytes();
  w.written_bytes = size_of(x.dtype);
  return w;
}

void add_rows(const TensorSpec& x, const std::string& problem) {
  const Path path("mse", "forward", x, problem);
  add_row(path("eager"), [x] {
    Work w = described(x);
    w.label = "sub, square, mean";
    w.held_bytes = w.read_bytes;
    w.judged = false;  // the differences stay in the caches where they fit
    w.can_be_captured = false;
    w.run = [a = uniform(x, -1, 1, 1), b = uniform(x, -1, 1, 2)](Runtime::Stream) {
      const NoGrad no_grad;
      mse(a, b);
    };
    return w;
  });
  add_floor_row(path, described(x));
}

const RowSource rows(&add_rows);

}  // namespace
}  // namespace plumb::bench
