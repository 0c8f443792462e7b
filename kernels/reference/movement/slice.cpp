#include "kernels/slice.h"

#include <algorithm>

#include "kernels/reference/elements.h"

namespace plumb {
namespace {

reference::Index place(const int64_t* begin) {
  reference::Index i;
  std::copy_n(begin, kMaxRank, i.of);
  return i;
}

}  // namespace

void Slice::reference(const Problem<Params>& p, Candidates& candidates) {
  const reference::Elements x(p.in[0]), y(p.out[0]);
  reference::offer(kName, candidates, [=, begin = place(p.params.begin)](const Launch& l) {
    reference::parallel_for_each_index(y.shape(),
                                       [&](const reference::Index& i) { y.copy(l.out[0], i, x, l.in[0], begin + i); });
  });
}

void Pad::reference(const Problem<Params>& p, Candidates& candidates) {
  const reference::Elements x(p.in[0]), y(p.out[0]);
  reference::offer(kName, candidates, [=, begin = place(p.params.begin), params = p.params](const Launch& l) {
    reference::parallel_for_each_index(
        y.shape(), [&](const reference::Index& i) { y.store(l.out[0], i, static_cast<double>(params.value)); });
    reference::parallel_for_each_index(x.shape(),
                                       [&](const reference::Index& i) { y.copy(l.out[0], begin + i, x, l.in[0], i); });
  });
}

void Concat::reference(const Problem<Params>& p, Candidates& candidates) {
  const reference::Elements y(p.out[0]);
  std::vector<reference::Elements> parts;
  for (const TensorSpec& x : p.in) parts.emplace_back(x);
  reference::offer(kName, candidates, [=, dim = static_cast<int>(p.params.dim)](const Launch& l) {
    reference::Index begin;
    for (size_t k = 0; k < parts.size(); ++k) {
      const reference::Elements& x = parts[k];
      reference::parallel_for_each_index(
          x.shape(), [&](const reference::Index& i) { y.copy(l.out[0], begin + i, x, l.in[k], i); });
      begin[dim] += x.shape()[dim];
    }
  });
}

}  // namespace plumb
