#include "kernels/permute.h"

#include "kernels/reference/elements.h"

namespace plumb {

void Permute::reference(const Problem<Params>& p, Candidates& candidates) {
  const reference::Elements x(p.in[0]), y(p.out[0]);
  reference::offer(kName, candidates, [=, params = p.params](const Launch& l) {
    reference::parallel_for_each_index(y.shape(), [&](const reference::Index& i) {
      reference::Index of_x;
      for (int d = 0; d < y.shape().rank(); ++d) of_x[params.dims[d]] = i[d];
      y.copy(l.out[0], i, x, l.in[0], of_x);
    });
  });
}

}  // namespace plumb
