#include "kernels/mse.h"

#include "kernels/reference/elements.h"

namespace plumb {

using reference::Elements;
using reference::for_each_index;
using reference::Index;
using reference::parallel_for_each_index;

void MseForward::reference(const Problem<NoParams>& p, Candidates& candidates) {
  const Elements x(p.in[0]), y(p.in[1]), loss(p.out[0]);
  if (!reference::computes_on(x.dtype())) return;
  reference::offer(kName, candidates, [=](const Launch& l) {
    double total = 0;
    for_each_index(x.shape(), [&](const Index& i) {
      const double difference = x.load(l.in[0], i) - y.load(l.in[1], i);
      total += difference * difference;
    });
    loss.store(l.out[0], {}, total / static_cast<double>(x.shape().numel()));
  });
}

void MseBackward::reference(const Problem<NoParams>& p, Candidates& candidates) {
  const Elements dy(p.in[0]), x(p.in[1]), y(p.in[2]), dx(p.out[0]);
  if (!reference::computes_on(x.dtype())) return;
  reference::offer(kName, candidates, [=](const Launch& l) {
    const double scale = 2 * dy.load(l.in[0], {}) / static_cast<double>(x.shape().numel());
    parallel_for_each_index(
        x.shape(), [&](const Index& i) { dx.store(l.out[0], i, (x.load(l.in[1], i) - y.load(l.in[2], i)) * scale); });
  });
}

}  // namespace plumb
