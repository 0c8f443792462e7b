#include "kernels/accumulate.h"

#include "kernels/reference/elements.h"

namespace plumb {

void Accumulate::reference(const Problem<NoParams>& p, Candidates& candidates) {
  const reference::Elements x(p.in[0]);
  if (!reference::computes_on(x.dtype())) return;
  reference::offer(kName, candidates, [=, is_relu = p.in.size() == 3](const Launch& l) {
    reference::parallel_for_each_index(x.shape(), [&](const reference::Index& i) {
      const bool passes = !is_relu || x.load(l.in[2], i) > 0;
      x.store(l.in[0], i, passes ? x.load(l.in[0], i) + x.load(l.in[1], i) : 0);
    });
  });
}

}  // namespace plumb
