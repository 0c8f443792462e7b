#include "kernels/batch_norm.h"

#include <cmath>

#include "kernels/cpu/normalization/batch_norm_channels.h"
#include "kernels/cpu/normalization/batch_norm_onednn.h"
#include "kernels/cpu/onednn/dnnl.h"
#include "kernels/cpu/wrappers/relu_epilogue.h"
#include "kernels/functors/unary.h"

namespace plumb::cpu {
namespace {

template <class T, bool kAdds, bool kIsRelu>
class Forward final : public Kernel {
 public:
  using C = Compute<T>;
  Forward(const Channels& v, const BatchNormParams& p)
      : Kernel(name_of(v)), v_(v), p_(p), partial_(v.pieces * v.columns) {
    info().workspace_bytes =
        (p.train ? 3 * static_cast<size_t>(partial_) * sizeof(double) : 0) + Coefficients<C>::bytes(v_.columns);
  }
  void run(const Launch& l) const override {
    const auto* x = static_cast<const T*>(l.in[0]);
    auto* partial = static_cast<double*>(l.workspace);
    const Coefficients<C> k(partial + (p_.train ? 3 * partial_ : 0), v_.columns);
    if (p_.train) {
      const auto first = [](int64_t, C d, int64_t) { return d; };
      ChannelSums<T, decltype(first)>(v_, x, nullptr, first, partial, partial + partial_, partial + 2 * partial_).run();
      for_channels(v_, [&](int64_t begin, int64_t count) { finish(l, begin, count, partial, k); });
    } else {
      for_each_channel(v_, [&](int64_t c) {
        const double inv_std = 1 / std::sqrt(at<C>(l.in[4], c) + p_.epsilon);
        k.set(v_, c, at<C>(l.in[3], c), inv_std * at<C>(l.in[1], c), at<C>(l.in[2], c));
      });
    }
    const auto* addend = kAdds ? static_cast<const T*>(l.in[5]) : nullptr;
    const Source sources[] = {{x}, {addend}};
    map_channels(v_, static_cast<T*>(l.out[0]), std::span(sources).first(kAdds ? 2 : 1), [=](int64_t j) {
      return [=, centre = k.centre[j], slope = k.slope[j], shift = k.shift[j]](int64_t i) {
        C z = (load(x + i) - centre) * slope + shift;
        if constexpr (kAdds) z += load(addend + i);
        return kIsRelu ? functors::Relu().forward(z) : z;
      };
    });
  }

 private:
  // Combines the pieces of some channels into their statistics, and computes what depends on them. Chan, Golub,
  // LeVeque: Algorithms for computing the sample variance, 1983. Piece by piece, since a channel's partial sums lie far
  // apart.
  void finish(const Launch& l, int64_t first, int64_t count, const double* partial, const Coefficients<C>& k) const {
    double mean[kChannelsAtOnce] = {}, m2[kChannelsAtOnce] = {}, n = 0;
    for (int64_t piece = 0; piece < v_.pieces; ++piece) {
      const double* pivots = partial + piece * v_.columns;
      const auto added = static_cast<double>(v_.count(piece));
      const double per_added = 1 / added, share = added / (n + added), between = n * share;
      const auto merge = [&](int64_t i, double pivot, double sum, double square) {
        const double delta = pivot + sum * per_added - mean[i];
        mean[i] += delta * share;
        m2[i] += square - sum * sum * per_added + delta * delta * between;
      };
      n += added;
      if (v_.columns == v_.channels) {  // neighbours lie side by side, for vectors
        for (int64_t i = 0; i < count; ++i) {
          const double* const at = pivots + first + i;
          merge(i, at[0], at[partial_], at[2 * partial_]);
        }
        continue;
      }
      for (int64_t i = 0; i < count; ++i) {
        double pivot = 0, sum = 0, square = 0;
        v_.for_columns(first + i, [&](int64_t j) {
          pivot = pivots[j];
          sum += pivots[partial_ + j];
          square += pivots[2 * partial_ + j];
        });
        merge(i, pivot, sum, square);
      }
    }
    for (int64_t i = 0; i < count; ++i) set(l, first + i, mean[i], std::max(m2[i] / n, 0.0), n, k);
  }
  void set(const Launch& l, int64_t c, double mean, double var, double n, const Coefficients<C>& k) const {
    const double inv_std = 1 / std::sqrt(var + p_.epsilon);
    update(l.in[3], c, mean);
    update(l.in[4], c, p_.unbiased_running_variance ? var * n / (n - 1) : var);
    static_cast<C*>(l.out[1])[c] = static_cast<C>(mean);
    static_cast<C*>(l.out[2])[c] = static_cast<C>(inv_std);
    // The shift compensates the rounding of the mean, which matters if the mean is large.
    const double slope = inv_std * at<C>(l.in[1], c), lost = mean - at<C>(l.out[1], c);
    k.set(v_, c, mean, slope, at<C>(l.in[2], c) - lost * slope);
  }
  void update(void* running, int64_t c, double batch) const {
    C& r = static_cast<C*>(running)[c];
    r = static_cast<C>((1 - p_.momentum) * static_cast<double>(r) + p_.momentum * batch);
  }

  Channels v_;
  BatchNormParams p_;
  int64_t partial_;
};

template <class T>
std::unique_ptr<Kernel> forward_kernel(const Channels& v, const BatchNormParams& p, bool adds) {
  if (p.activation == Activation::kRelu) {
    if (adds) return std::make_unique<Forward<T, true, true>>(v, p);
    return std::make_unique<Forward<T, false, true>>(v, p);
  }
  if (adds) return std::make_unique<Forward<T, true, false>>(v, p);
  return std::make_unique<Forward<T, false, false>>(v, p);
}

// y += addend in place, behind a kernel that cannot do it itself. Null if `kernel` is null.
std::unique_ptr<Kernel> add_epilogue(std::unique_ptr<Kernel> kernel, const TensorSpec& y) {
  std::unique_ptr<Kernel> both;
  if (!kernel) return both;
  dispatch_compute(y.dtype, [&]<class T>() {
    both = wrap_kernel(std::move(kernel), "", "+add", [n = y.numel()](const Kernel& inner, const Launch& l) {
      inner.run(l);
      const auto* addend = static_cast<const T*>(l.in[5]);
      auto* to = static_cast<T*>(l.out[0]);
      parallel_for(n, kGrainBytes / static_cast<int64_t>(sizeof(T)), 64, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) store(to + i, load(to + i) + load(addend + i));
      });
    });
  });
  return both;
}

}  // namespace
}  // namespace plumb::cpu

namespace plumb {

void BatchNormForward::cpu(const Problem<Params>& p, Candidates& candidates) {
  const TensorSpec& x = p.in[0];
  cpu::dispatch_compute(x.dtype, [&]<class T>() {
    candidates.add("loop", [=, params = p.params, adds = p.in.size() == 6] {
      if (x.numel() == 0) return make_kernel("plumb:batch_norm", [](const Launch&) {});  // y is empty, too
      return cpu::forward_kernel<T>(cpu::Channels(x), params, adds);
    });
    candidates.add(Provider::kOneDnn, "onednn", [p] {
      auto kernel = cpu::declining([&] { return cpu::onednn_batch_norm_forward(p); });
      if (p.in.size() == 6) kernel = cpu::add_epilogue(std::move(kernel), p.out[0]);
      return p.params.activation == Activation::kRelu ? cpu::relu_epilogue(std::move(kernel), p.out[0])
                                                      : std::move(kernel);
    });
  });
}

}  // namespace plumb
