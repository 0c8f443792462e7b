#include "kernels/flip.h"

#include "kernels/reference/elements.h"

namespace plumb {

void Flip::reference(const Problem<Params>& p, Candidates& candidates) {
  const reference::Elements x(p.in[0]), y(p.out[0]);
  reference::offer(kName, candidates, [=, last = p.in[0].rank() - 1](const Launch& l) {
    reference::parallel_for_each_index(y.shape(), [&](const reference::Index& i) {
      reference::Index from = i;
      from[last] = x.shape()[last] - 1 - i[last];
      y.copy(l.out[0], i, x, l.in[0], from);
    });
  });
}

}  // namespace plumb
