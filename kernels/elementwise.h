// Elementwise kernels, one kind for each functor and stage. The functors are in kernels/functors/.
#pragma once

#include <algorithm>

#include "../dispatch/kernel.h"
#include "functors/stages.h"

namespace plumb {

namespace detail {

/// Offers a backend's kernel of functor number `functor` of UnaryFunctors or BinaryFunctors. Not a template, so that a
/// backend's own compiler can compile it.
using OfferFunctor = void(size_t functor, Stage stage, const Problem<NoParams>& p, const void* f, Candidates&);
OfferFunctor offer_unary_cpu, offer_binary_cpu, offer_unary_reference, offer_binary_reference;
PLUMB_IN_CUDA OfferFunctor offer_unary_cuda;
PLUMB_IN_CUDA OfferFunctor offer_binary_cuda;

/// f.template operator()<stage>() for a stage of a functor of one number, and of two.
template <class F>
void visit_unary(Stage s, const F& f) {
  if (s == Stage::kForward) return f.template operator()<Stage::kForward>();
  if (s == Stage::kBackward) return f.template operator()<Stage::kBackward>();
  f.template operator()<Stage::kSecond>();
}
template <class F>
void visit_binary(Stage s, const F& f) {
  if (s == Stage::kBackwardB) return f.template operator()<Stage::kBackwardB>();
  if (s == Stage::kSecondAB) return f.template operator()<Stage::kSecondAB>();
  if (s == Stage::kSecondBA) return f.template operator()<Stage::kSecondBA>();
  if (s == Stage::kSecondBB) return f.template operator()<Stage::kSecondBB>();
  visit_unary(s, f);
}

template <class F>
Problem<NoParams> without_params(const Problem<F>& p) {
  static constexpr NoParams none;
  return {none, p.in, p.out, p.threads, p.math, p.device};
}
/// "relu_backward" as a constant with zeros at its end.
template <class F, Stage S>
inline constexpr auto stage_name = [] {
  std::array<char, sizeof F::kName + 12> name{};
  const auto end = std::ranges::copy(std::string_view(F::kName), name.begin()).out;
  std::ranges::copy(kStageSuffixes[static_cast<size_t>(S)], end);
  return name;
}();

/// Forward {x} -> y; backward {dy, v} -> dx; second {g, dy, v} -> the gradient with respect to v. All have one spec.
template <class F, Stage S>
struct Unary {
  static constexpr const char* kName = detail::stage_name<F, S>.data();
  static constexpr unsigned kUnread = unread_of_unary<F>(S);
  static constexpr bool kTunesAlike = true;  // or a factor that changes from step to step would be measured each time
  using Params = F;
  static void reference(const Problem<F>& p, Candidates& c) {
    offer_unary_reference(index_of<F, UnaryFunctors>, S, detail::without_params(p), &p.params, c);
  }
  static void cpu(const Problem<F>& p, Candidates& c) {
    offer_unary_cpu(index_of<F, UnaryFunctors>, S, detail::without_params(p), &p.params, c);
  }
  static void cuda(const Problem<F>& p, Candidates& c) {
    offer_unary_cuda(index_of<F, UnaryFunctors>, S, detail::without_params(p), &p.params, c);
  }
};

/// Forward {a, b} -> y; backward {dy, a, b}; second {g, dy, a, b}. Operands broadcast to the output: shapes align at
/// the right, extents are equal or 1. Operands of the output's rank have its layout; the others are row-major.
template <class F, Stage S>
struct Binary {
  static constexpr const char* kName = detail::stage_name<F, S>.data();
  static constexpr unsigned kUnread = unread_of_binary<F>(S);
  static constexpr bool kTunesAlike = true;
  using Params = F;
  static void reference(const Problem<F>& p, Candidates& c) {
    offer_binary_reference(index_of<F, BinaryFunctors>, S, detail::without_params(p), &p.params, c);
  }
  static void cpu(const Problem<F>& p, Candidates& c) {
    offer_binary_cpu(index_of<F, BinaryFunctors>, S, detail::without_params(p), &p.params, c);
  }
  static void cuda(const Problem<F>& p, Candidates& c) {
    offer_binary_cuda(index_of<F, BinaryFunctors>, S, detail::without_params(p), &p.params, c);
  }
};

}  // namespace detail

}  // namespace plumb
