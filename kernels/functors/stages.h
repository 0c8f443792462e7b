// What each stage of an elementwise op computes, as a function of its operands in the compute type.
#pragma once

#include <array>
#include <string_view>

#include "binary.h"
#include "unary.h"

namespace plumb::detail {

/// Which function of a functor a kernel evaluates.
enum class Stage {
  kForward,    ///< y = f(x), or f(a, b)
  kBackward,   ///< backward(dy, v), or backward_a(dy, a, b)
  kBackwardB,  ///< backward_b(dy, a, b)
  kSecond,     ///< g d backward(dy, v) / dv, or g d backward_a / da
  kSecondAB,   ///< g d backward_a / db
  kSecondBA,   ///< g d backward_b / da
  kSecondBB,   ///< g d backward_b / db
};
constexpr bool is_second(Stage s) { return s >= Stage::kSecond; }
inline constexpr std::string_view kStageSuffixes[] = {"",           "_backward",  "_backward_b", "_second",
                                                      "_second_ab", "_second_ba", "_second_bb"};

/// The operands that a stage does not read, as bits: they are given for their shapes alone.
template <class F>
constexpr unsigned unread_of_unary(Stage s) {
  return s == Stage::kBackward && F::kKeeps == Keeps::kNothing ? 0b10 : 0;
}
template <class F>
constexpr unsigned unread_of_binary(Stage s) {
  if constexpr (requires { F::kUnreadByA; }) {
    if (s == Stage::kBackward) return F::kUnreadByA;
  }
  if constexpr (requires { F::kUnreadByB; }) {
    if (s == Stage::kBackwardB) return F::kUnreadByB;
  }
  return 0;
}

// The functor is a base, so that a stage of one without attributes is empty as well. As a [[no_unique_address]] member
// it would be too, but of such a struct nvcc has one layout on the host and another in kernels that take it.

/// kBroadcasts: operands may be broadcast. kRare: second derivatives, one way of running which will do.
template <class F, Stage S>
struct UnaryStage : F {
  static constexpr size_t kInputs = S == Stage::kForward ? 1 : (S == Stage::kBackward ? 2 : 3);
  static constexpr unsigned kUnread = unread_of_unary<F>(S);
  static constexpr bool kBroadcasts = false, kRare = is_second(S);
  template <class C>
  constexpr C operator()(const std::array<C, kInputs>& in) const {
    if constexpr (S == Stage::kForward) {
      return F::forward(in[0]);
    } else if constexpr (S == Stage::kBackward) {
      return F::backward(in[0], in[1]);
    } else {
      return in[0] * F::backward(functors::Dual<C>(in[1]), functors::Dual<C>(in[2], C(1))).d;
    }
  }
};

template <class F, Stage S>
struct BinaryStage : F {
  static constexpr size_t kInputs = S == Stage::kForward ? 2 : (is_second(S) ? 4 : 3);
  static constexpr unsigned kUnread = unread_of_binary<F>(S);
  static constexpr bool kBroadcasts = true, kRare = is_second(S);
  template <class C>
  constexpr C operator()(const std::array<C, kInputs>& in) const {
    if constexpr (S == Stage::kForward) {
      return F::forward(in[0], in[1]);
    } else if constexpr (S == Stage::kBackward) {
      return F::backward_a(in[0], in[1], in[2]);
    } else if constexpr (S == Stage::kBackwardB) {
      return F::backward_b(in[0], in[1], in[2]);
    } else {
      constexpr bool by_a = S == Stage::kSecond || S == Stage::kSecondBA;
      const functors::Dual<C> dy(in[1]), a(in[2], C(by_a ? 1 : 0)), b(in[3], C(by_a ? 0 : 1));
      if constexpr (S == Stage::kSecond || S == Stage::kSecondAB) {
        return in[0] * F::backward_a(dy, a, b).d;
      } else {
        return in[0] * F::backward_b(dy, a, b).d;
      }
    }
  }
};

}  // namespace plumb::detail
