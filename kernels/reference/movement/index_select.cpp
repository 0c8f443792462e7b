#include "kernels/index_select.h"

#include "kernels/reference/elements.h"

namespace plumb {

using reference::Elements;
using reference::Index;

void IndexSelect::reference(const Problem<Params>& p, Candidates& candidates) {
  const Elements x(p.in[0]), y(p.out[0]);
  const int dim = static_cast<int>(p.params.dim);
  reference::offer(kName, candidates, [=](const Launch& l) {
    const auto* index = static_cast<const int64_t*>(l.in[1]);
    const int64_t slices = x.shape()[dim];
    for (int64_t i = 0; i < y.shape()[dim]; ++i)
      PLUMB_CHECK(index[i] >= 0 && index[i] < slices, kBadIndex, i, index[i], slices);
    reference::parallel_for_each_index(y.shape(), [&](const Index& i) {
      Index from = i;
      from[dim] = index[i[dim]];
      y.copy(l.out[0], i, x, l.in[0], from);
    });
  });
}

void IndexAdd::reference(const Problem<Params>& p, Candidates& candidates) {
  const Elements dy(p.in[0]), dx(p.out[0]);
  if (!reference::computes_on(dy.dtype())) return;
  const int dim = static_cast<int>(p.params.dim);
  reference::offer(kName, candidates, [=](const Launch& l) {
    const auto* index = static_cast<const int64_t*>(l.in[1]);
    const int64_t slices = dx.shape()[dim];
    std::vector<std::vector<int64_t>> with(static_cast<size_t>(slices));  // the slices of dy with each index
    for (int64_t i = 0; i < dy.shape()[dim]; ++i) {
      PLUMB_CHECK(index[i] >= 0 && index[i] < slices, kBadIndex, i, index[i], slices);
      with[static_cast<size_t>(index[i])].push_back(i);
    }
    reference::parallel_for_each_index(dx.shape(), [&](const Index& at) {
      double sum = 0;
      Index from = at;
      for (const int64_t i : with[static_cast<size_t>(at[dim])]) {
        from[dim] = i;
        sum += dy.load(l.in[0], from);
      }
      dx.store(l.out[0], at, sum);
    });
  });
}

}  // namespace plumb
