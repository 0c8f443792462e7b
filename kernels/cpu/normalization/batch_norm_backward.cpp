#include <cmath>

#include "kernels/batch_norm.h"
#include "kernels/cpu/normalization/batch_norm_channels.h"
#include "kernels/cpu/normalization/batch_norm_onednn.h"
#include "kernels/cpu/onednn/dnnl.h"

namespace plumb::cpu {
namespace {

// inv_std of channel c, of what the inputs are told to be.
template <class C>
double inv_std_of(const Launch& l, const BatchNormParams& p, int64_t c) {
  const double spread = at<C>(l.in[4], c);
  return p.train ? spread : 1 / std::sqrt(spread + p.epsilon);
}

// What is left of dy behind a ReLU: nothing but where its input, of d = x - mean, is above 0.
template <bool kIsRelu, class C>
C left_of(C dy, C d, C scale, C beta) {
  return kIsRelu && !(d * scale + beta > 0) ? C(0) : dy;
}

// Sets what tells where the ReLU has a gradient.
template <class C>
void set_mask(const Launch& l, const BatchNormParams& p, const Channels& v, const Coefficients<C>& k) {
  for_each_channel(v, [&](int64_t c) {
    k.set(v, c, at<C>(l.in[3], c), 0, 0, inv_std_of<C>(l, p, c) * at<C>(l.in[2], c));
    v.for_columns(c, [&](int64_t j) { k.beta[j] = static_cast<const C*>(l.in[5])[c]; });
  });
}

template <class T, bool kIsRelu>
class Backward final : public Kernel {
 public:
  using C = Compute<T>;
  Backward(const Channels& v, const BatchNormParams& p, bool needs_dx)
      : Kernel(name_of(v)), v_(v), p_(p), needs_dx_(needs_dx), partial_(v.pieces * v.columns) {
    info().workspace_bytes = 2 * static_cast<size_t>(partial_) * sizeof(double) + Coefficients<C>::bytes(v_.columns);
  }
  void run(const Launch& l) const override {
    const auto *dy = static_cast<const T*>(l.in[0]), *x = static_cast<const T*>(l.in[1]);
    auto* partial = static_cast<double*>(l.workspace);
    const Coefficients<C> k(partial + 2 * partial_, v_.columns);
    const auto* mean = static_cast<const C*>(l.in[3]);
    if constexpr (kIsRelu) set_mask(l, p_, v_, k);
    const auto first = [dy, scale = k.scale, beta = k.beta](int64_t i, C d, int64_t j) {
      return left_of<kIsRelu>(load(dy + i), d, kIsRelu ? scale[j] : 0, kIsRelu ? beta[j] : 0);
    };
    ChannelSums<T, decltype(first)>(v_, x, mean, first, nullptr, partial, partial + partial_).run();
    for_channels(v_, [&](int64_t begin, int64_t count) { finish(l, begin, count, partial, k); });
    if (!needs_dx_) return;
    auto* dx = static_cast<T*>(l.out[2]);
    const Source sources[] = {{dy}, {x}};
    if (!p_.train && !kIsRelu) {  // y is linear in x, so dx does not depend on x, not even on a NaN
      map_channels(v_, dx, std::span(sources).first(1),
                   [=](int64_t j) { return [=, scale = k.scale[j]](int64_t i) { return load(dy + i) * scale; }; });
      return;
    }
    const auto beta_of = [beta = k.beta](int64_t j) { return kIsRelu ? beta[j] : 0; };
    if (!p_.train) {
      map_channels(v_, dx, sources, [=](int64_t j) {
        return [=, centre = k.centre[j], scale = k.scale[j], beta = beta_of(j)](int64_t i) {
          return left_of<kIsRelu>(load(dy + i), load(x + i) - centre, scale, beta) * scale;
        };
      });
      return;
    }
    map_channels(v_, dx, sources, [=](int64_t j) {
      return [=, centre = k.centre[j], slope = k.slope[j], shift = k.shift[j], scale = k.scale[j],
              beta = beta_of(j)](int64_t i) {
        const C d = load(x + i) - centre;
        return left_of<kIsRelu>(load(dy + i), d, scale, beta) * scale + (d * slope + shift);
      };
    });
  }

 private:
  // Piece by piece, since a channel's partial sums lie far apart.
  void finish(const Launch& l, int64_t first, int64_t count, const double* partial, const Coefficients<C>& k) const {
    double sum[kChannelsAtOnce] = {}, product[kChannelsAtOnce] = {};  // of dy, and of dy (x - mean)
    for (int64_t piece = 0; piece < v_.pieces; ++piece) {
      const double *const sums = partial + piece * v_.columns, *const products = sums + partial_;
      for (int64_t i = 0; i < count; ++i) {
        v_.for_columns(first + i, [&](int64_t j) {
          sum[i] += sums[j];
          product[i] += products[j];
        });
      }
    }
    for (int64_t i = 0; i < count; ++i) set(l, first + i, sum[i], product[i], k);
  }
  void set(const Launch& l, int64_t c, double sum, double product, const Coefficients<C>& k) const {
    const double inv_std = inv_std_of<C>(l, p_, c);
    static_cast<C*>(l.out[0])[c] = static_cast<C>(product * inv_std);
    static_cast<C*>(l.out[1])[c] = static_cast<C>(sum);
    const double scale = inv_std * at<C>(l.in[2], c);
    const double share = scale / static_cast<double>(v_.per_channel);
    k.set(v_, c, at<C>(l.in[3], c), -share * product * inv_std * inv_std, -share * sum, scale);
  }

  Channels v_;
  BatchNormParams p_;
  bool needs_dx_;
  int64_t partial_;
};

// What is left of dy, and then `kernel`, which knows no ReLU, on that. Null if `kernel` is null.
std::unique_ptr<Kernel> with_relu_backward(std::unique_ptr<Kernel> kernel, const TensorSpec& x,
                                           const BatchNormParams& p) {
  std::unique_ptr<Kernel> both;
  if (!kernel) return both;
  dispatch_compute(x.dtype, [&]<class T>() {
    using C = Compute<T>;
    const Channels v(x);
    const size_t of_inner = plumb::detail::aligned(kernel->info().workspace_bytes);
    const size_t of_dz = plumb::detail::aligned(x.bytes());
    both = wrap_kernel(std::move(kernel), "", "+relu_backward", [=](const Kernel& inner, const Launch& l) {
      char* const memory = static_cast<char*>(l.workspace);
      const Coefficients<C> k(memory + of_inner + of_dz, v.columns);
      set_mask(l, p, v, k);
      const auto *dy = static_cast<const T*>(l.in[0]), *given = static_cast<const T*>(l.in[1]);
      auto* const dz = reinterpret_cast<T*>(memory + of_inner);
      const Source sources[] = {{dy}, {given}};
      map_channels(v, dz, sources, [=](int64_t j) {
        return [=, centre = k.centre[j], scale = k.scale[j], beta = k.beta[j]](int64_t i) {
          return left_of<true>(load(dy + i), load(given + i) - centre, scale, beta);
        };
      });
      void* const in[] = {dz, l.in[1], l.in[2], l.in[3], l.in[4]};
      inner.run({in, l.out, memory, l.stream});
    });
    both->info().workspace_bytes = of_inner + of_dz + Coefficients<C>::bytes(v.columns);
  });
  return both;
}

// Without elements there is nothing to sum: the gradients of gamma and beta are zero.
std::unique_ptr<Kernel> without_elements(const TensorSpec& parameter) {
  return make_kernel("plumb:batch_norm", [bytes = parameter.bytes()](const Launch& l) {
    for (int i = 0; i < 2; ++i) std::fill_n(static_cast<char*>(l.out[i]), bytes, char{0});
  });
}

}  // namespace
}  // namespace plumb::cpu

namespace plumb {

void BatchNormBackward::cpu(const Problem<Params>& p, Candidates& candidates) {
  const TensorSpec& x = p.in[1];
  const bool is_relu = p.params.activation == Activation::kRelu;
  cpu::dispatch_compute(x.dtype, [&]<class T>() {
    candidates.add("loop",
                   [=, gamma = p.in[2], params = p.params, needs_dx = p.out.size() == 3]() -> std::unique_ptr<Kernel> {
                     if (x.numel() == 0) return cpu::without_elements(gamma);
                     const cpu::Channels v(x);
                     if (is_relu) return std::make_unique<cpu::Backward<T, true>>(v, params, needs_dx);
                     return std::make_unique<cpu::Backward<T, false>>(v, params, needs_dx);
                   });
    candidates.add(Provider::kOneDnn, "onednn", [p, x, is_relu] {
      auto kernel = cpu::declining([&] { return cpu::onednn_batch_norm_backward(p); });
      return is_relu ? cpu::with_relu_backward(std::move(kernel), x, p.params) : std::move(kernel);
    });
  });
}

}  // namespace plumb
