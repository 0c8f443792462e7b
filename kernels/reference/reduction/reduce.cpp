#include "kernels/reduce.h"

#include <algorithm>
#include <limits>

#include "kernels/reference/elements.h"

namespace plumb::reference {
namespace {

// What belongs to one element of y: x's extents where it is reduced, 1 elsewhere.
Shape reduced_part(const Shape& x, uint32_t dims) {
  Shape part = x;
  for (int d = 0; d < x.rank(); ++d) {
    if (!(dims >> d & 1)) part = part.with(d, 1);
  }
  return part;
}

// The number of the first maximum of value(index) in row-major order; a NaN is more than any number.
template <class V, class Value>
int64_t first_maximum(const Shape& shape, const Value& value) {
  int64_t best = 0, n = 0;
  V largest{};
  for_each_index(shape, [&](const Index& i) {
    const V v = value(i);
    if (n == 0 || v > largest || (v != v && largest == largest)) {
      largest = v;
      best = n;
    }
    ++n;
  });
  return best;
}

}  // namespace
}  // namespace plumb::reference

namespace plumb {

using reference::Elements;
using reference::for_each_index;
using reference::Index;
using reference::parallel_for_each_index;

void Reduce::reference(const Problem<Params>& p, Candidates& candidates) {
  const Elements x(p.in[0]), y(p.out[0]);
  if (!reference::computes_on(x.dtype())) return;
  const Shape part = reference::reduced_part(x.shape(), p.params.dims);
  reference::offer(kName, candidates, [=, what = p.params.what](const Launch& l) {
    parallel_for_each_index(y.shape(), [&](const Index& i) {
      double result = what == Reduction::kMax ? -std::numeric_limits<double>::infinity() : 0;
      for_each_index(part, [&](const Index& k) {
        const double v = x.load(l.in[0], i + k);
        if (what == Reduction::kMax) {
          if (v > result || v != v) result = v;  // nothing is more than a NaN
        } else {
          result += v;
        }
      });
      y.store(l.out[0], i, what == Reduction::kMean ? result / static_cast<double>(part.numel()) : result);
    });
  });
}

void Argmax::reference(const Problem<Params>& p, Candidates& candidates) {
  const Elements x(p.in[0]), y(p.out[0]);
  const bool floating = is_floating(x.dtype());
  if (floating && !reference::computes_on(x.dtype())) return;
  const Shape part = reference::reduced_part(x.shape(), p.params.dims);
  reference::offer(kName, candidates, [=](const Launch& l) {
    parallel_for_each_index(y.shape(), [&](const Index& i) {
      const auto number = [&](const Index& k) { return x.load(l.in[0], i + k); };
      const auto integer = [&](const Index& k) { return x.load_integer(l.in[0], i + k); };
      y.store_integer(
          l.out[0], i,
          floating ? reference::first_maximum<double>(part, number) : reference::first_maximum<int64_t>(part, integer));
    });
  });
}

void MaxBackward::reference(const Problem<NoParams>& p, Candidates& candidates) {
  const Elements dy(p.in[0]), x(p.in[1]), y(p.in[2]), dx(p.out[0]);
  if (!reference::computes_on(x.dtype())) return;
  uint32_t dims = 0;
  for (int d = 0; d < x.shape().rank(); ++d) dims |= (y.shape()[d] == 1 ? 1u : 0u) << d;
  const Shape part = reference::reduced_part(x.shape(), dims);
  reference::offer(kName, candidates, [=](const Launch& l) {
    parallel_for_each_index(y.shape(), [&](const Index& i) {
      const double largest = y.load(l.in[2], i);
      const auto is_largest = [&](const Index& k) {
        const double v = x.load(l.in[1], i + k);
        return v == largest || (v != v && largest != largest);
      };
      int64_t count = 0;
      for_each_index(part, [&](const Index& k) { count += is_largest(k); });
      for_each_index(part, [&](const Index& k) {
        dx.store(l.out[0], i + k, is_largest(k) ? dy.load(l.in[0], i) / static_cast<double>(count) : 0);
      });
    });
  });
}

void Expand::reference(const Problem<NoParams>& p, Candidates& candidates) {
  const Elements x(p.in[0], p.out[0].rank()), y(p.out[0]);
  reference::offer(kName, candidates, [=](const Launch& l) {
    parallel_for_each_index(y.shape(), [&](const Index& i) { y.copy(l.out[0], i, x, l.in[0], i); });
  });
}

}  // namespace plumb
