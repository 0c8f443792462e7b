// What one step of an optimizer does to one element, in each framework's formula, on host and device.
//
// A rule is made once a step from the attributes, the learning rate and the number of the step (from 1), all in double;
// rule(w, g, s) then updates the element w and its states s for the gradient g. Its switches are known when it is
// compiled (with_rule), so that what an optimizer does not use costs nothing, or told at run time (with_told_rule),
// where all threads take one way and few kernels are compiled; how many states there are is always known.
#pragma once

#include "../../core/convention.h"
#include "../../core/hash.h"
#include "math.h"

namespace plumb {

struct SgdParams {
  Real momentum, dampening, weight_decay;
  Convention convention;
  int32_t nesterov;
  int64_t copies = 0;  ///< of so many of the weights, the first, bf16 copies are inputs, too
};

struct AdamParams {
  Real beta1, beta2, epsilon, weight_decay;
  Convention convention;
  int32_t decoupled;  ///< weight decay acts on w (AdamW) and not on g
  int64_t copies = 0;
};

struct RmsPropParams {
  Real rho, epsilon, momentum, weight_decay;
  Convention convention;
  int32_t centered;
  int64_t copies = 0;
};

namespace functors {

/// Switches of a rule, by number.
template <bool... kValues>
struct Known {
  constexpr bool operator[](size_t i) const {
    constexpr bool values[] = {kValues..., false};
    return values[i];
  }
};
struct Told {
  bool values[3] = {};
  constexpr bool operator[](size_t i) const { return values[i]; }
};

/// Into the gradient, or from the weight itself before the step (Loshchilov, Hutter 2019).
template <class T>
constexpr void decay_weight(bool is_decoupled, T& w, T& g, T decay, T rate) {
  if (is_decoupled) {
    w -= rate * decay * w;
  } else {
    g += decay * w;
  }
}

/// State: the velocity, if there is momentum. Keras keeps the rate inside the velocity and decays the weight, the
/// others do neither.
template <class T, bool kMomentum, class Switches>
struct Sgd {
  static constexpr size_t kStates = kMomentum;
  enum { kKeras, kDecays, kNesterov };
  T rate, momentum, fresh, decay;
  Switches is;

  PLUMB_HOST_DEVICE Sgd(const SgdParams& p, double learning_rate, int64_t step, Switches switches = {})
      : rate(static_cast<T>(learning_rate)),
        momentum(static_cast<T>(p.momentum)),
        fresh(static_cast<T>(step == 1 ? 1 : 1 - p.dampening)),  // PyTorch does not dampen the first gradient
        decay(static_cast<T>(p.weight_decay)),
        is(switches) {}

  constexpr void operator()(T& w, T g, [[maybe_unused]] T* s) const {
    if (is[kDecays]) decay_weight(is[kKeras], w, g, decay, rate);
    if constexpr (!kMomentum) {
      w -= rate * g;
    } else if (is[kKeras]) {
      s[0] = momentum * s[0] - rate * g;
      w += is[kNesterov] ? momentum * s[0] - rate * g : s[0];
    } else {
      s[0] = momentum * s[0] + fresh * g;
      w -= rate * (is[kNesterov] ? g + momentum * s[0] : s[0]);
    }
  }
};

/// States: the means of g and of g^2. PyTorch adds epsilon to the corrected root (Kingma, Ba 2015, algorithm 1), the
/// others to the root before its correction (the paper's section 2).
template <class T, class Switches>
struct Adam {
  static constexpr size_t kStates = 2;
  enum { kPyTorch, kDecays, kDecoupled };
  T rate, fresh1, fresh2, beta2, epsilon, decay, scale, root;
  Switches is;

  PLUMB_HOST_DEVICE Adam(const AdamParams& p, double learning_rate, int64_t step, Switches switches = {})
      : rate(static_cast<T>(learning_rate)),
        fresh1(static_cast<T>(1 - p.beta1)),
        fresh2(static_cast<T>(1 - p.beta2)),
        beta2(static_cast<T>(p.beta2)),
        epsilon(static_cast<T>(p.epsilon)),
        decay(static_cast<T>(p.weight_decay)),
        is(switches) {
    const double correction1 = 1 - math::pow(static_cast<double>(p.beta1), static_cast<double>(step));
    const double correction2 = math::sqrt(1 - math::pow(static_cast<double>(p.beta2), static_cast<double>(step)));
    scale = static_cast<T>(learning_rate / correction1 * (is[kPyTorch] ? 1 : correction2));
    root = static_cast<T>(correction2);
  }

  PLUMB_HOST_DEVICE void operator()(T& w, T g, T* s) const {
    if (is[kDecays]) decay_weight(is[kDecoupled], w, g, decay, rate);
    s[0] += fresh1 * (g - s[0]);
    if (is[kPyTorch]) {
      s[1] = beta2 * s[1] + fresh2 * g * g;
      w -= scale * (s[0] / (math::sqrt(s[1]) / root + epsilon));
    } else {
      s[1] += fresh2 * (g * g - s[1]);
      w -= scale * s[0] / (math::sqrt(s[1]) + epsilon);
    }
  }
};

/// States: the mean of g^2, the mean of g if centered, the velocity if there is momentum. PyTorch adds epsilon to the
/// root, decays by the gradient and keeps the rate outside the velocity; the others do it all the other way.
template <class T, bool kCentered, bool kMomentum, class Switches>
struct RmsProp {
  static constexpr size_t kStates = size_t{1} + kCentered + kMomentum, kVelocity = kStates - 1;
  enum { kPyTorch, kDecays };
  T rate, rho, fresh, epsilon, momentum, decay;
  Switches is;

  PLUMB_HOST_DEVICE RmsProp(const RmsPropParams& p, double learning_rate, int64_t, Switches switches = {})
      : rate(static_cast<T>(learning_rate)),
        rho(static_cast<T>(p.rho)),
        fresh(static_cast<T>(1 - p.rho)),
        epsilon(static_cast<T>(p.epsilon)),
        momentum(static_cast<T>(p.momentum)),
        decay(static_cast<T>(p.weight_decay)),
        is(switches) {}

  PLUMB_HOST_DEVICE void operator()(T& w, T g, T* s) const {
    if (is[kDecays]) decay_weight(!is[kPyTorch], w, g, decay, rate);
    s[0] = rho * s[0] + fresh * g * g;
    T square = s[0];
    if constexpr (kCentered) {
      s[1] = rho * s[1] + fresh * g;
      square -= s[1] * s[1];
    }
    const T direction = is[kPyTorch] ? g / (math::sqrt(square) + epsilon) : rate * g / math::sqrt(square + epsilon);
    T change = direction;
    if constexpr (kMomentum) change = s[kVelocity] = momentum * s[kVelocity] + direction;
    w -= is[kPyTorch] ? rate * change : change;
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

/// Calls f.template operator()<Rule>() with the rule that the attributes ask for, on elements of type T, whose switches
/// are constants.
template <class T, class F>
void with_rule(const SgdParams& p, const F& f) {
  functors::with_constants(
      [&]<bool kKeras, bool kDecays, bool kMomentum, bool kNesterov>() {
        f.template operator()<functors::Sgd<T, kMomentum, functors::Known<kKeras, kDecays, kMomentum && kNesterov>>>();
      },
      p.convention == Convention::kKeras, p.weight_decay > 0, p.momentum > 0, p.nesterov != 0);
}
template <class T, class F>
void with_rule(const AdamParams& p, const F& f) {
  functors::with_constants(
      [&]<bool kPyTorch, bool kDecays, bool kDecoupled>() {
        f.template operator()<functors::Adam<T, functors::Known<kPyTorch, kDecays, kDecays && kDecoupled>>>();
      },
      p.convention == Convention::kPyTorch, p.weight_decay > 0, p.decoupled != 0);
}
template <class T, class F>
void with_rule(const RmsPropParams& p, const F& f) {
  functors::with_constants(
      [&]<bool kPyTorch, bool kDecays, bool kCentered, bool kMomentum>() {
        f.template operator()<functors::RmsProp<T, kCentered, kMomentum, functors::Known<kPyTorch, kDecays>>>();
      },
      p.convention == Convention::kPyTorch, p.weight_decay > 0, p.centered != 0, p.momentum > 0);
}

/// Calls f.template operator()<Rule>(switches) with a rule that is told its switches.
template <class T, class F>
void with_told_rule(const SgdParams& p, const F& f) {
  const functors::Told is{{p.convention == Convention::kKeras, p.weight_decay > 0, p.nesterov != 0}};
  functors::with_constants(
      [&]<bool kMomentum>() { f.template operator()<functors::Sgd<T, kMomentum, functors::Told>>(is); },
      p.momentum > 0);
}
template <class T, class F>
void with_told_rule(const AdamParams& p, const F& f) {
  const functors::Told is{{p.convention == Convention::kPyTorch, p.weight_decay > 0, p.decoupled != 0}};
  f.template operator()<functors::Adam<T, functors::Told>>(is);
}
template <class T, class F>
void with_told_rule(const RmsPropParams& p, const F& f) {
  const functors::Told is{{p.convention == Convention::kPyTorch, p.weight_decay > 0}};
  functors::with_constants(
      [&]<bool kCentered, bool kMomentum>() {
        f.template operator()<functors::RmsProp<T, kCentered, kMomentum, functors::Told>>(is);
      },
      p.centered != 0, p.momentum > 0);
}

}  // namespace plumb
