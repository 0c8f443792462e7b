#include "kernels/cross_entropy.h"

#include "kernels/cpu/softmax/rows.h"
#include "kernels/functors/math.h"

namespace plumb::cpu {

namespace math = functors::math;

namespace {

// Checked before the loop over the rows, since an exception must not leave a parallel loop.
void check_labels(const int64_t* labels, int64_t rows, int64_t classes) {
  bool good = true;
  for (int64_t i = 0; i < rows; ++i) good &= labels[i] >= 0 && labels[i] < classes;
  if (good) return;
  for (int64_t i = 0; i < rows; ++i) {
    PLUMB_CHECK(labels[i] >= 0 && labels[i] < classes,
                "cross_entropy: the label of row {} is {}; with {} classes labels are 0 to {}", i, labels[i], classes,
                classes - 1);
  }
}

template <class T>
std::unique_ptr<Kernel> forward(int64_t rows, int64_t classes, LossReduction reduction) {
  using C = Compute<T>;  // the dtype of the loss and the statistics
  const bool is_each = reduction == LossReduction::kNone;
  auto kernel = make_kernel("plumb:cross_entropy", [=](const Launch& l) {
    const auto* x = static_cast<const T*>(l.in[0]);
    const auto* labels = static_cast<const int64_t*>(l.in[1]);
    check_labels(labels, rows, classes);
    auto *loss = static_cast<C*>(l.out[0]), *statistics = static_cast<C*>(l.out[1]);
    auto* losses = static_cast<double*>(l.workspace);
    const auto put = [&](int64_t i, double value) {
      if (is_each) {
        loss[i] = static_cast<C>(value);
      } else {
        losses[i] = value;
      }
    };
    by_rows<T>(
        rows, classes, false,
        [&](int64_t i) {
          double of_rows[kSide];
          cross_entropy_rows(x + i * classes, classes, labels + i, statistics + 2 * i, of_rows);
          for (int64_t s = 0; s < kSide; ++s) put(i + s, of_rows[s]);
        },
        [&](int64_t i) { put(i, cross_entropy_row(x + i * classes, classes, labels[i], statistics + 2 * i)); });
    if (is_each) return;
    double total = 0;
    for (int64_t i = 0; i < rows; ++i) total += losses[i];
    *loss = static_cast<C>(reduction == LossReduction::kMean ? total / static_cast<double>(rows) : total);
  });
  if (!is_each) kernel->info().workspace_bytes = static_cast<size_t>(rows) * sizeof(double);
  return kernel;
}

template <class T>
std::unique_ptr<Kernel> backward(int64_t rows, int64_t classes, LossReduction reduction) {
  using C = Compute<T>;
  return make_kernel("plumb:cross_entropy", [=](const Launch& l) {
    const auto *dy = static_cast<const C*>(l.in[0]), *statistics = static_cast<const C*>(l.in[3]);
    const auto* x = static_cast<const T*>(l.in[1]);
    const auto* labels = static_cast<const int64_t*>(l.in[2]);
    auto* dx = static_cast<T*>(l.out[0]);
    check_labels(labels, rows, classes);
    const C count = reduction == LossReduction::kMean ? static_cast<C>(rows) : C(1);
    const auto gradient_of = [&](int64_t i) { return (reduction == LossReduction::kNone ? dy[i] : dy[0]) / count; };
    // Of the label of row i: read before dx, which may be x, is written.
    const auto of_label = [&](int64_t i) {
      const C below = (load(x + i * classes + labels[i]) - statistics[2 * i]) - statistics[2 * i + 1];
      return (math::exp_below(below) - C(1)) * gradient_of(i);
    };
    by_rows<T>(
        rows, classes, false,
        [&](int64_t i) {
          C d[kSide], labelled[kSide];
          for (int64_t s = 0; s < kSide; ++s) d[s] = gradient_of(i + s), labelled[s] = of_label(i + s);
          cross_entropy_backward_rows(x + i * classes, classes, statistics + 2 * i, d, dx + i * classes);
          for (int64_t s = 0; s < kSide; ++s) store(dx + (i + s) * classes + labels[i + s], labelled[s]);
        },
        [&](int64_t i) {
          const C labelled = of_label(i);
          cross_entropy_backward_row(x + i * classes, classes, statistics + 2 * i, gradient_of(i), dx + i * classes);
          store(dx + i * classes + labels[i], labelled);
        });
  });
}

template <bool kBackward>
void offer(const TensorSpec& logits, const CrossEntropyParams& p, Candidates& candidates) {
  dispatch_compute(logits.dtype, [&]<class T>() {
    candidates.add("loop", [rows = logits.shape[0], classes = logits.shape[1], r = p.reduction] {
      return kBackward ? backward<T>(rows, classes, r) : forward<T>(rows, classes, r);
    });
  });
}

}  // namespace
}  // namespace plumb::cpu

namespace plumb {

void CrossEntropyForward::cpu(const Problem<Params>& p, Candidates& c) { cpu::offer<false>(p.in[0], p.params, c); }
void CrossEntropyBackward::cpu(const Problem<Params>& p, Candidates& c) { cpu::offer<true>(p.in[1], p.params, c); }

}  // namespace plumb
