#include "kernels/layer_norm.h"

#include <bit>
#include <cmath>

#include "kernels/cpu/normalization/layer_norm_onednn.h"
#include "kernels/cpu/offer.h"
#include "kernels/cpu/onednn/dnnl.h"
#include "kernels/cpu/row_vectors.h"

namespace plumb::cpu {
namespace {

using plumb::detail::LayerNormGradients;
using plumb::detail::LayerNormRows;

constexpr char kName[] = "plumb:layer_norm";

/// `kInputs` is 1 with x alone, 2 with w, and 3 with b, too.
template <class T, int kInputs>
class Forward final : public Kernel {
 public:
  using C = Compute<T>;
  using L = Lanes<T>;
  using V = typename L::V;
  Forward(const LayerNormRows& v, double epsilon) : Kernel(kName), v_(v), epsilon_(epsilon) {}
  void run(const Launch& l) const override {
    const RowWriter<T> writer(v_.rows, v_.columns);
    parallel_for(v_.rows, kGrainBytes / (v_.columns * int64_t{sizeof(T)}), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) normalise(l, row, writer);
      writer.finish();
    });
  }

 private:
  // Sums about an element, so that a constant row has no deviation; the second pass corrects the mean of the first,
  // whose rounding matters where the mean is large. Chan, Golub, LeVeque: Algorithms for computing the sample variance,
  // 1983.
  void normalise(const Launch& l, int64_t row, const RowWriter<T>& writer) const {
    const T* x = static_cast<const T*>(l.in[0]) + row * v_.columns;
    const double share = 1 / static_cast<double>(v_.columns);
    const C pivot = cpu::load(x);
    const auto [about_pivot] = row_sums<T, 1>(
        v_.columns, [=](int64_t i, int64_t count) { return std::array<V, 1>{L::load(x + i, count) - pivot}; });
    const C centre = static_cast<C>(static_cast<double>(pivot) + about_pivot * share);
    const auto [sum, squares] = row_sums<T, 2>(v_.columns, [=](int64_t i, int64_t count) {
      const V d = L::load(x + i, count) - centre;
      return std::array<V, 2>{d, d * d};
    });
    const double lost = sum * share, inv_std = 1 / std::sqrt(std::max(squares * share - lost * lost, 0.0) + epsilon_);
    static_cast<C*>(l.out[1])[row] = static_cast<C>(static_cast<double>(centre) + lost);
    static_cast<C*>(l.out[2])[row] = static_cast<C>(inv_std);
    const C slope = static_cast<C>(inv_std), shift = static_cast<C>(-lost * inv_std);
    const auto* w = static_cast<const C*>(kInputs > 1 ? l.in[1] : nullptr);
    const auto* b = static_cast<const C*>(kInputs > 2 ? l.in[2] : nullptr);
    writer.write(static_cast<T*>(l.out[0]) + row * v_.columns, [=](int64_t i, int64_t count) {
      V y = (L::load(x + i, count) - centre) * slope + shift;
      if constexpr (kInputs > 1) y = y * L::load(w + i, count);
      if constexpr (kInputs > 2) y = y + L::load(b + i, count);
      return y;
    });
  }

  LayerNormRows v_;
  double epsilon_;
};

/// Rows are cut into pieces by the shape alone, and each piece has sums of its own for dw and db, so that their bits do
/// not depend on the number of threads.
template <class T, bool kHasW, bool kNeedsDw, bool kNeedsDx>
class Backward final : public Kernel {
 public:
  using C = Compute<T>;
  using L = Lanes<T>;
  using V = typename L::V;
  explicit Backward(const LayerNormRows& v) : Kernel(kName), v_(v), pieces_(v.rows) {
    if (!kNeedsDw) return;
    // A power of two divides evenly among threads.
    const int64_t most = std::clamp<int64_t>(v.rows / (v.columns < 4096 ? 32 : 8), 1, 64);
    pieces_ = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(most)));
    info().workspace_bytes = static_cast<size_t>(pieces_ * v.columns) * 2 * (sizeof(double) + sizeof(C));
  }
  void run(const Launch& l) const override {
    const RowWriter<T> writer(v_.rows, v_.columns);
    const int64_t bytes = v_.rows * v_.columns * int64_t{sizeof(T)} / std::max<int64_t>(1, pieces_);
    parallel_for(pieces_, kGrainBytes / std::max<int64_t>(1, bytes), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) add_piece(l, i, writer);
      writer.finish();
    });
    if (!kNeedsDw) return;
    auto *dw = static_cast<C*>(l.out[0]), *db = static_cast<C*>(l.out[1]);
    parallel_for(v_.columns, 4096 / pieces_, kColumns, [&](int64_t begin, int64_t end) {
      for (; begin < end; begin += kColumns) {
        const int64_t n = std::min(kColumns, end - begin);
        add_pieces(l, begin, n, dw + begin);
        add_pieces(l, v_.columns + begin, n, db + begin);
      }
    });
  }

 private:
  static constexpr int64_t kRowsOfSum = 64;  // that are added up without double

  double* wide(const Launch& l, int64_t piece) const {
    return static_cast<double*>(l.workspace) + piece * 2 * v_.columns;
  }
  C* narrow(const Launch& l, int64_t piece) const {
    return reinterpret_cast<C*>(wide(l, pieces_)) + piece * 2 * v_.columns;
  }

  // The sums from `first` on of all pieces.
  void add_pieces(const Launch& l, int64_t first, int64_t n, C* out) const {
    double total[kColumns] = {};
    for (int64_t i = 0; i < pieces_; ++i) {
      const double* sums = wide(l, i) + first;
      for (int64_t k = 0; k < n; ++k) total[k] += sums[k];
    }
    for (int64_t k = 0; k < n; ++k) out[k] = static_cast<C>(total[k]);
  }
  void add_piece(const Launch& l, int64_t piece, const RowWriter<T>& writer) const {
    const Range rows = cpu::piece(v_.rows, piece, pieces_);
    if constexpr (!kNeedsDw) {
      for (int64_t row = rows.begin; row < rows.end; ++row) add_row(l, row, nullptr, writer);
    } else {
      double* const sums = wide(l, piece);
      C* const some = narrow(l, piece);
      std::fill_n(sums, 2 * v_.columns, 0.0);
      for (int64_t row = rows.begin; row < rows.end;) {
        std::fill_n(some, 2 * v_.columns, C(0));
        for (const int64_t stop = std::min(rows.end, row + kRowsOfSum); row < stop; ++row)
          add_row(l, row, some, writer);
        for (int64_t k = 0; k < 2 * v_.columns; ++k) sums[k] += static_cast<double>(some[k]);
      }
    }
  }
  void add_row(const Launch& l, int64_t row, C* sums, const RowWriter<T>& writer) const {
    const int64_t n = v_.columns;
    const auto *dy = static_cast<const T*>(l.in[0]) + row * n, *x = static_cast<const T*>(l.in[1]) + row * n;
    const C mean = static_cast<const C*>(l.in[2])[row], inv_std = static_cast<const C*>(l.in[3])[row];
    const auto* w = static_cast<const C*>(kHasW ? l.in[4] : nullptr);
    C *dw = sums, *db = sums + (kNeedsDw ? n : 0);
    const auto add = [=](int64_t i, int64_t count, V d, V x_hat) {
      if constexpr (!kNeedsDw) return;
      L::store(dw + i, L::load(dw + i, count) + d * x_hat, count);
      L::store(db + i, L::load(db + i, count) + d, count);
    };
    const auto x_hat_at = [=](int64_t i, int64_t count) { return (L::load(x + i, count) - mean) * inv_std; };
    const auto scaled = [=](int64_t i, int64_t count, V d) {
      if constexpr (kHasW) return d * L::load(w + i, count);
      return d;
    };
    if constexpr (!kNeedsDx) {
      for_row<T>(n, [=](int64_t i, int64_t count) { add(i, count, L::load(dy + i, count), x_hat_at(i, count)); });
      return;
    }
    const auto totals = row_sums<T, 2>(n, [=](int64_t i, int64_t count) {
      const V g = scaled(i, count, L::load(dy + i, count));
      return std::array<V, 2>{g, g * x_hat_at(i, count)};
    });
    const C of_mean = static_cast<C>(totals[0] / static_cast<double>(n)),
            of_deviation = static_cast<C>(totals[1] / static_cast<double>(n));
    writer.write(static_cast<T*>(l.out[kNeedsDw ? 2 : 0]) + row * n, [=](int64_t i, int64_t count) {
      const V d = L::load(dy + i, count), x_hat = x_hat_at(i, count);
      add(i, count, d, x_hat);
      return inv_std * (scaled(i, count, d) - of_mean - x_hat * of_deviation);
    });
  }

  LayerNormRows v_;
  int64_t pieces_;
};

template <class T>
std::unique_ptr<Kernel> forward(const LayerNormRows& v, double epsilon, size_t inputs) {
  if (inputs == 1) return std::make_unique<Forward<T, 1>>(v, epsilon);
  if (inputs == 2) return std::make_unique<Forward<T, 2>>(v, epsilon);
  return std::make_unique<Forward<T, 3>>(v, epsilon);
}
template <class T>
std::unique_ptr<Kernel> backward(const LayerNormRows& v, const LayerNormGradients& wanted) {
  if (!wanted.has_w) return std::make_unique<Backward<T, false, false, true>>(v);
  if (!wanted.needs_dw) return std::make_unique<Backward<T, true, false, true>>(v);
  if (!wanted.needs_dx) return std::make_unique<Backward<T, true, true, false>>(v);
  return std::make_unique<Backward<T, true, true, true>>(v);
}

template <class T>
constexpr Place place_of_onednn = std::is_same_v<T, Bfloat16> ? Place::kFirst : Place::kLast;

}  // namespace
}  // namespace plumb::cpu

namespace plumb {

// Ours first in f32: oneDNN's rounds the mean, and loses digits where that is large; its sums of columns depend on the
// number of threads. In bf16 neither shows as much as oneDNN is faster.
void LayerNormForward::cpu(const Problem<Params>& p, Candidates& candidates) {
  const Candidates::Make onednn = [p] { return cpu::declining([&] { return cpu::onednn_layer_norm_forward(p); }); };
  cpu::dispatch_compute(p.in[0].dtype, [&]<class T>() {
    const Candidates::Make own = [v = detail::LayerNormRows(p.in[0], p.params), epsilon = double{p.params.epsilon},
                                  inputs = p.in.size()] { return cpu::forward<T>(v, epsilon, inputs); };
    cpu::offer_in_order(candidates, {{"onednn", Provider::kOneDnn, onednn, cpu::place_of_onednn<T>},
                                     {"loop", Provider::kPlumbline, own}});
  });
}

void LayerNormBackward::cpu(const Problem<Params>& p, Candidates& candidates) {
  const Candidates::Make onednn = [p] { return cpu::declining([&] { return cpu::onednn_layer_norm_backward(p); }); };
  cpu::dispatch_compute(p.in[1].dtype, [&]<class T>() {
    const Candidates::Make own = [v = detail::LayerNormRows(p.in[1], p.params),
                                  wanted = detail::LayerNormGradients(p)] { return cpu::backward<T>(v, wanted); };
    cpu::offer_in_order(candidates, {{"onednn", Provider::kOneDnn, onednn, cpu::place_of_onednn<T>},
                                     {"loop", Provider::kPlumbline, own}});
  });
}

}  // namespace plumb
