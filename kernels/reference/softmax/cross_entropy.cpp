#include "kernels/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/reference/elements.h"

namespace plumb {

using reference::Elements;
using reference::Index;

static int64_t label_of(const void* labels, int64_t row, int64_t classes) {
  const int64_t label = static_cast<const int64_t*>(labels)[row];
  PLUMB_CHECK(label >= 0 && label < classes,
              "cross_entropy: the label of row {} is {}; with {} classes labels are 0 to {}", row, label, classes,
              classes - 1);
  return label;
}

void CrossEntropyForward::reference(const Problem<Params>& p, Candidates& candidates) {
  const Elements x(p.in[0]), loss(p.out[0]), statistics(p.out[1]);
  if (!reference::computes_on(x.dtype())) return;
  const int64_t rows = x.shape()[0], classes = x.shape()[1];
  reference::offer(kName, candidates, [=, reduction = p.params.reduction](const Launch& l) {
    double total = 0;
    for (int64_t n = 0; n < rows; ++n) {
      const int64_t label = label_of(l.in[1], n, classes);
      double largest = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int64_t k = 0; k < classes; ++k) largest = std::max(largest, x.load(l.in[0], {{n, k}}));
      for (int64_t k = 0; k < classes; ++k) sum += std::exp(x.load(l.in[0], {{n, k}}) - largest);
      const double of_row = std::log(sum) - (x.load(l.in[0], {{n, label}}) - largest);
      statistics.store(l.out[1], {{n, 0}}, largest);
      statistics.store(l.out[1], {{n, 1}}, std::log(sum));
      if (reduction == LossReduction::kNone) loss.store(l.out[0], {{n}}, of_row);
      total += of_row;
    }
    if (reduction == LossReduction::kSum) loss.store(l.out[0], {}, total);
    if (reduction == LossReduction::kMean) loss.store(l.out[0], {}, total / static_cast<double>(rows));
  });
}

void CrossEntropyBackward::reference(const Problem<Params>& p, Candidates& candidates) {
  const Elements dy(p.in[0], 1), x(p.in[1]), statistics(p.in[3]), dx(p.out[0]);
  if (!reference::computes_on(x.dtype())) return;
  const int64_t rows = x.shape()[0], classes = x.shape()[1];
  reference::offer(kName, candidates, [=, reduction = p.params.reduction](const Launch& l) {
    const double share = reduction == LossReduction::kMean ? 1 / static_cast<double>(rows) : 1;
    for (int64_t n = 0; n < rows; ++n) {
      const int64_t label = label_of(l.in[2], n, classes);
      const double largest = statistics.load(l.in[3], {{n, 0}}), log_sum = statistics.load(l.in[3], {{n, 1}});
      for (int64_t k = 0; k < classes; ++k) {
        const double softmax = std::exp(x.load(l.in[1], {{n, k}}) - largest - log_sum);
        dx.store(l.out[0], {{n, k}}, (softmax - (k == label)) * dy.load(l.in[0], {{n}}) * share);
      }
    }
  });
}

}  // namespace plumb
