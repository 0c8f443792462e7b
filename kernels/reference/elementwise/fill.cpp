#include "kernels/fill.h"

#include "kernels/reference/elements.h"

namespace plumb {

void Fill::reference(const Problem<Params>& p, Candidates& candidates) {
  const reference::Elements y(p.out[0]);
  reference::offer(kName, candidates, [=, value = static_cast<double>(p.params.value)](const Launch& l) {
    reference::parallel_for_each_index(y.shape(), [&](const reference::Index& i) { y.store(l.out[0], i, value); });
  });
}

}  // namespace plumb
