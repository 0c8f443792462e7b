#include "kernels/copy.h"

#include "kernels/reference/elements.h"

namespace plumb {

using reference::Elements;
using reference::Index;

void Copy::reference(const Problem<NoParams>& p, Candidates& candidates) {
  const Elements x(p.in[0]);
  reference::offer(kName, candidates, [=](const Launch& l) {
    reference::parallel_for_each_index(x.shape(), [&](const Index& i) { x.copy(l.out[0], i, x, l.in[0], i); });
  });
}

void CopyInto::reference(const Problem<NoParams>& p, Candidates& candidates) {
  const Elements x(p.in[0]);
  reference::offer(kName, candidates, [=](const Launch& l) {
    reference::parallel_for_each_index(x.shape(), [&](const Index& i) { x.copy(l.in[0], i, x, l.in[1], i); });
  });
}

}  // namespace plumb
