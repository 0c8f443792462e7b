// What one step of an optimizer does to one element, in each framework's formula, on host and device.
//
// A rule is made once a step from the attributes, the learning rate and the number of the step (from 1), all in double;
// rule(w, g, s) then updates the element w and its states s for the gradient g. What an optimizer does not use costs
// nothing: the switches are template parameters, and with_rule picks the rule at run time.
#pragma once

#include "../../core/convention.h"
#include "../../core/hash.h"
#include "math.h"

namespace plumb {

struct SgdParams {
  Real momentum, dampening, weight_decay;
  Convention convention;
  int32_t nesterov;
};

struct AdamParams {
  Real beta1, beta2, epsilon, weight_decay;
  Convention convention;
  int32_t decoupled;  ///< weight decay acts on w (AdamW) and not on g
};

struct RmsPropParams {
  Real rho, epsilon, momentum, weight_decay;
  Convention convention;
  int32_t centered;
};

namespace functors {

/// Where weight decay goes: into the gradient, or from the weight itself before the step (Loshchilov, Hutter 2019).
enum class Decay { kNone, kL2, kDecoupled };

template <Decay D, class T>
void decay_weight(T& w, T& g, T decay, T rate) {
  if constexpr (D == Decay::kL2) g += decay * w;
  if constexpr (D == Decay::kDecoupled) w -= rate * decay * w;
}

/// State: the velocity, if there is momentum. Keras keeps the rate inside the velocity, the others outside.
template <class T, bool kKeras, bool kDecays, bool kMomentum, bool kNesterov>
struct Sgd {
  static constexpr size_t kStates = kMomentum;
  static constexpr Decay kDecay = !kDecays ? Decay::kNone : kKeras ? Decay::kDecoupled : Decay::kL2;
  T rate, momentum, fresh, decay;

  Sgd(const SgdParams& p, double learning_rate, int64_t step)
      : rate(static_cast<T>(learning_rate)),
        momentum(static_cast<T>(p.momentum)),
        fresh(static_cast<T>(step == 1 ? 1 : 1 - p.dampening)),  // PyTorch does not dampen the first gradient
        decay(static_cast<T>(p.weight_decay)) {}

  void operator()(T& w, T g, T* s) const {
    decay_weight<kDecay>(w, g, decay, rate);
    if constexpr (!kMomentum) {
      w -= rate * g;
    } else if constexpr (kKeras) {
      s[0] = momentum * s[0] - rate * g;
      w += kNesterov ? momentum * s[0] - rate * g : s[0];
    } else {
      s[0] = momentum * s[0] + fresh * g;
      w -= rate * (kNesterov ? g + momentum * s[0] : s[0]);
    }
  }
};

/// States: the means of g and of g^2. PyTorch adds epsilon to the corrected root (Kingma, Ba 2015, algorithm 1), the
/// others to the root before its correction (the paper's section 2).
template <class T, bool kPyTorch, Decay kDecay>
struct Adam {
  static constexpr size_t kStates = 2;
  T rate, fresh1, fresh2, beta2, epsilon, decay, scale, root;

  Adam(const AdamParams& p, double learning_rate, int64_t step)
      : rate(static_cast<T>(learning_rate)),
        fresh1(static_cast<T>(1 - p.beta1)),
        fresh2(static_cast<T>(1 - p.beta2)),
        beta2(static_cast<T>(p.beta2)),
        epsilon(static_cast<T>(p.epsilon)),
        decay(static_cast<T>(p.weight_decay)) {
    const double correction1 = 1 - math::pow(static_cast<double>(p.beta1), static_cast<double>(step));
    const double correction2 = math::sqrt(1 - math::pow(static_cast<double>(p.beta2), static_cast<double>(step)));
    scale = static_cast<T>(learning_rate / correction1 * (kPyTorch ? 1 : correction2));
    root = static_cast<T>(correction2);
  }

  void operator()(T& w, T g, T* s) const {
    decay_weight<kDecay>(w, g, decay, rate);
    s[0] += fresh1 * (g - s[0]);
    if constexpr (kPyTorch) {
      s[1] = beta2 * s[1] + fresh2 * g * g;
      w -= scale * (s[0] / (math::sqrt(s[1]) / root + epsilon));
    } else {
      s[1] += fresh2 * (g * g - s[1]);
      w -= scale * s[0] / (math::sqrt(s[1]) + epsilon);
    }
  }
};

/// States: the mean of g^2, the mean of g if centered, the velocity if there is momentum. PyTorch adds epsilon to the
/// root and keeps the rate outside the velocity, the others do both inside.
template <class T, bool kPyTorch, bool kDecays, bool kCentered, bool kMomentum>
struct RmsProp {
  static constexpr size_t kStates = size_t{1} + kCentered + kMomentum, kVelocity = kStates - 1;
  static constexpr Decay kDecay = !kDecays ? Decay::kNone : kPyTorch ? Decay::kL2 : Decay::kDecoupled;
  T rate, rho, fresh, epsilon, momentum, decay;

  RmsProp(const RmsPropParams& p, double learning_rate, int64_t)
      : rate(static_cast<T>(learning_rate)),
        rho(static_cast<T>(p.rho)),
        fresh(static_cast<T>(1 - p.rho)),
        epsilon(static_cast<T>(p.epsilon)),
        momentum(static_cast<T>(p.momentum)),
        decay(static_cast<T>(p.weight_decay)) {}

  void operator()(T& w, T g, T* s) const {
    decay_weight<kDecay>(w, g, decay, rate);
    s[0] = rho * s[0] + fresh * g * g;
    T square = s[0];
    if constexpr (kCentered) {
      s[1] = rho * s[1] + fresh * g;
      square -= s[1] * s[1];
    }
    const T direction = kPyTorch ? g / (math::sqrt(square) + epsilon) : rate * g / math::sqrt(square + epsilon);
    T change = direction;
    if constexpr (kMomentum) change = s[kVelocity] = momentum * s[kVelocity] + direction;
    w -= kPyTorch ? rate * change : change;
  }
};

/// Calls f.template operator()<flags...>() with run-time flags as constants.
template <bool... kKnown, class F>
void with_constants(const F& f) {
  f.template operator()<kKnown...>();
}
template <bool... kKnown, class F, class... Rest>
void with_constants(const F& f, bool first, Rest... rest) {
  first ? with_constants<kKnown..., true>(f, rest...) : with_constants<kKnown..., false>(f, rest...);
}

}  // namespace functors

/// Calls f.template operator()<Rule>() with the rule that the attributes ask for, on elements of type T.
template <class T, class F>
void with_rule(const SgdParams& p, const F& f) {
  functors::with_constants(
      [&]<bool kKeras, bool kDecays, bool kMomentum, bool kNesterov>() {
        f.template operator()<functors::Sgd<T, kKeras, kDecays, kMomentum, kMomentum && kNesterov>>();
      },
      p.convention == Convention::kKeras, p.weight_decay > 0, p.momentum > 0, p.nesterov != 0);
}
template <class T, class F>
void with_rule(const AdamParams& p, const F& f) {
  using functors::Decay;
  functors::with_constants(
      [&]<bool kPyTorch, bool kDecays, bool kDecoupled>() {
        constexpr Decay kDecay = !kDecays ? Decay::kNone : kDecoupled ? Decay::kDecoupled : Decay::kL2;
        f.template operator()<functors::Adam<T, kPyTorch, kDecay>>();
      },
      p.convention == Convention::kPyTorch, p.weight_decay > 0, p.decoupled != 0);
}
template <class T, class F>
void with_rule(const RmsPropParams& p, const F& f) {
  functors::with_constants(
      [&]<bool kPyTorch, bool kDecays, bool kCentered, bool kMomentum>() {
        f.template operator()<functors::RmsProp<T, kPyTorch, kDecays, kCentered, kMomentum>>();
      },
      p.convention == Convention::kPyTorch, p.weight_decay > 0, p.centered != 0, p.momentum > 0);
}

}  // namespace plumb
