#include "kernels/relu_bias.h"

#include "kernels/reference/elements.h"

namespace plumb {

using reference::Elements;
using reference::for_each_index;
using reference::Index;

void ReluBiasBackward::reference(const Problem<Params>& p, Candidates& candidates) {
  const Elements dy(p.in[0]), y(p.in[1]), dz(p.out[0]), db(p.out[1]);
  if (!reference::computes_on(dy.dtype())) return;
  reference::offer(kName, candidates, [=](const Launch& l) {
    for_each_index(db.shape(), [&](const Index& channel) {
      double sum = 0;
      for_each_index(dy.shape().with(1, 1), [&](Index i) {
        i[1] = channel[0];
        const double kept = y.load(l.in[1], i) > 0 ? dy.load(l.in[0], i) : 0;
        dz.store(l.out[0], i, kept);
        sum += kept;
      });
      db.store(l.out[1], channel, sum);
    });
  });
}

}  // namespace plumb
