#include "kernels/layer_norm.h"

#include <cmath>

#include "kernels/reference/elements.h"

namespace plumb {

using reference::Elements;
using reference::Index;

namespace {

// The places of what belongs to element `column` of a row: in x, and in w and b, which have its last dimensions.
struct RowPlaces {
  Shape normalised, rows;
  int lead;

  RowPlaces(const TensorSpec& x, const LayerNormParams& p) : rows(x.shape), lead(x.rank() - p.dims) {
    normalised = Shape(x.shape.extents().subspan(static_cast<size_t>(lead)));
    for (int d = lead; d < x.rank(); ++d) rows = rows.with(d, 1);
  }
  int64_t columns() const { return normalised.numel(); }
  Index of_parameter(int64_t column) const { return reference::index_at(normalised, column); }
  Index of_x(const Index& row, int64_t column) const {
    const Index k = of_parameter(column);
    Index at = row;
    for (int d = 0; d < normalised.rank(); ++d) at[lead + d] = k[d];
    return at;
  }
};

}  // namespace

void LayerNormForward::reference(const Problem<Params>& p, Candidates& candidates) {
  const Elements x(p.in[0]), y(p.out[0]), statistic(p.out[1]);
  if (!reference::computes_on(x.dtype())) return;
  const RowPlaces places(p.in[0], p.params);
  const Elements parameter({places.normalised, statistic.dtype()});
  reference::offer(kName, candidates, [=, inputs = p.in.size(), epsilon = p.params.epsilon](const Launch& l) {
    reference::parallel_for_each_index(places.rows, [&](const Index& row) {
      const auto n = static_cast<double>(places.columns());
      const auto x_at = [&](int64_t k) { return x.load(l.in[0], places.of_x(row, k)); };
      double mean = 0, var = 0;
      for (int64_t k = 0; k < places.columns(); ++k) mean += x_at(k) / n;
      for (int64_t k = 0; k < places.columns(); ++k) var += std::pow(x_at(k) - mean, 2) / n;
      const double inv_std = 1 / std::sqrt(var + epsilon);
      statistic.store(l.out[1], row, mean);
      statistic.store(l.out[2], row, inv_std);
      for (int64_t k = 0; k < places.columns(); ++k) {
        const Index at = places.of_parameter(k);
        const double w = inputs > 1 ? parameter.load(l.in[1], at) : 1, b = inputs > 2 ? parameter.load(l.in[2], at) : 0;
        y.store(l.out[0], places.of_x(row, k), (x_at(k) - mean) * inv_std * w + b);
      }
    });
  });
}

void LayerNormBackward::reference(const Problem<Params>& p, Candidates& candidates) {
  const Elements x(p.in[1]), statistic(p.in[2]);  // dy and dx are of x's spec
  if (!reference::computes_on(x.dtype())) return;
  const RowPlaces places(p.in[1], p.params);
  const Elements parameter({places.normalised, statistic.dtype()});
  reference::offer(kName, candidates, [=, wanted = detail::LayerNormGradients(p)](const Launch& l) {
    const auto dy_at = [&](const Index& row, int64_t k) { return x.load(l.in[0], places.of_x(row, k)); };
    const auto x_hat_at = [&](const Index& row, int64_t k) {
      return (x.load(l.in[1], places.of_x(row, k)) - statistic.load(l.in[2], row)) * statistic.load(l.in[3], row);
    };
    const auto g_at = [&](const Index& row, int64_t k) {
      return dy_at(row, k) * (wanted.has_w ? parameter.load(l.in[4], places.of_parameter(k)) : 1);
    };
    if (wanted.needs_dw) {
      cpu::parallel_for(places.columns(), 1, [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) {
          double dw = 0, db = 0;
          reference::for_each_index(places.rows, [&](const Index& row) {
            dw += dy_at(row, k) * x_hat_at(row, k);
            db += dy_at(row, k);
          });
          parameter.store(l.out[0], places.of_parameter(k), dw);
          parameter.store(l.out[1], places.of_parameter(k), db);
        }
      });
    }
    if (!wanted.needs_dx) return;
    reference::parallel_for_each_index(places.rows, [&](const Index& row) {
      const auto n = static_cast<double>(places.columns());
      double of_mean = 0, of_deviation = 0;
      for (int64_t k = 0; k < places.columns(); ++k) {
        of_mean += g_at(row, k) / n;
        of_deviation += g_at(row, k) * x_hat_at(row, k) / n;
      }
      for (int64_t k = 0; k < places.columns(); ++k) {
        const double dx = statistic.load(l.in[3], row) * (g_at(row, k) - of_mean - x_hat_at(row, k) * of_deviation);
        x.store(l.out[wanted.dx()], places.of_x(row, k), dx);
      }
    });
  });
}

}  // namespace plumb
