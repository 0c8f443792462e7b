#include "kernels/softmax.h"

#include <cmath>
#include <limits>

#include "kernels/reference/elements.h"

namespace plumb {

using reference::Elements;
using reference::Index;

// Of the elements along dim, body(line) gets what gives the place of element k: line(k).
template <class Body>
static void for_each_line(const Shape& x, int dim, const Body& body) {
  reference::parallel_for_each_index(x.with(dim, 1), [&](const Index& i) {
    body([&](int64_t k) {
      Index at = i;
      at[dim] = k;
      return at;
    });
  });
}

void SoftmaxForward::reference(const Problem<Params>& p, Candidates& candidates) {
  const Elements x(p.in[0]), y(p.out[0]);
  if (!reference::computes_on(x.dtype())) return;
  reference::offer(kName, candidates, [=, dim = p.params.dim, log = p.params.log != 0](const Launch& l) {
    for_each_line(x.shape(), dim, [&](const auto& line) {
      const int64_t n = x.shape()[dim];
      double largest = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int64_t k = 0; k < n; ++k) largest = std::max(largest, x.load(l.in[0], line(k)));
      for (int64_t k = 0; k < n; ++k) sum += std::exp(x.load(l.in[0], line(k)) - largest);
      for (int64_t k = 0; k < n; ++k) {
        const double v = x.load(l.in[0], line(k)) - largest;
        y.store(l.out[0], line(k), log ? v - std::log(sum) : std::exp(v) / sum);
      }
    });
  });
}

void SoftmaxBackward::reference(const Problem<Params>& p, Candidates& candidates) {
  const Elements dy(p.in[0]), y(p.in[1]), dx(p.out[0]);
  if (!reference::computes_on(y.dtype())) return;
  reference::offer(kName, candidates, [=, dim = p.params.dim, log = p.params.log != 0](const Launch& l) {
    for_each_line(y.shape(), dim, [&](const auto& line) {
      const int64_t n = y.shape()[dim];
      double sum = 0;
      for (int64_t k = 0; k < n; ++k) {
        sum += dy.load(l.in[0], line(k)) * (log ? 1 : y.load(l.in[1], line(k)));
      }
      for (int64_t k = 0; k < n; ++k) {
        const double d = dy.load(l.in[0], line(k)), v = y.load(l.in[1], line(k));
        dx.store(l.out[0], line(k), log ? d - std::exp(v) * sum : v * (d - sum));
      }
    });
  });
}

}  // namespace plumb
