#include "kernels/cast.h"

#include "kernels/reference/elements.h"

namespace plumb {

void Cast::reference(const Problem<NoParams>& p, Candidates& candidates) {
  const reference::Elements x(p.in[0]), y(p.out[0]);
  reference::offer(kName, candidates, [=](const Launch& l) {
    reference::parallel_for_each_index(y.shape(), [&](const reference::Index& i) {
      if (is_floating(x.dtype())) {
        y.store(l.out[0], i, x.load(l.in[0], i));
      } else {
        y.store_integer(l.out[0], i, x.load_integer(l.in[0], i));
      }
    });
  });
}

}  // namespace plumb
