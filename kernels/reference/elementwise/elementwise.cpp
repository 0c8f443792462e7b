// Elementwise functors element by element: on doubles, or on i64 for integers, whatever the dtype. Each is compiled
// once for all stages.
#include "kernels/elementwise.h"

#include <cstring>

#include "kernels/reference/elements.h"

namespace plumb::reference {

using detail::Stage;
namespace {

constexpr size_t kMostOperands = 4;

// A functor: its attributes as bytes, and what it makes of the operands of a stage.
struct Functor {
  std::array<std::byte, 16> attributes{};
  double (*of_numbers)(const void* f, Stage, const double* v) = nullptr;
  int64_t (*of_integers)(const void* f, const int64_t* v) = nullptr;  // forward; null where there is none

  template <class F>
  static Functor with_attributes(const F& f) {
    static_assert(sizeof(F) <= 16 && std::is_trivially_copyable_v<F>);
    Functor made;
    std::memcpy(made.attributes.data(), &f, sizeof f);
    return made;
  }
};

template <class F>
double unary(const void* f, Stage stage, const double* v) {
  const F& op = *static_cast<const F*>(f);
  if (stage == Stage::kForward) return op.forward(v[0]);
  if (stage == Stage::kBackward) return op.backward(v[0], v[1]);
  return v[0] * op.backward(functors::Dual<double>(v[1]), functors::Dual<double>(v[2], 1.0)).d;
}

template <class F>
double binary(const void* f, Stage stage, const double* v) {
  using D = functors::Dual<double>;
  const F& op = *static_cast<const F*>(f);
  switch (stage) {
    case Stage::kForward: return op.forward(v[0], v[1]);
    case Stage::kBackward: return op.backward_a(v[0], v[1], v[2]);
    case Stage::kBackwardB: return op.backward_b(v[0], v[1], v[2]);
    case Stage::kSecond: return v[0] * op.backward_a(D(v[1]), D(v[2], 1.0), D(v[3])).d;
    case Stage::kSecondAB: return v[0] * op.backward_a(D(v[1]), D(v[2]), D(v[3], 1.0)).d;
    case Stage::kSecondBA: return v[0] * op.backward_b(D(v[1]), D(v[2], 1.0), D(v[3])).d;
    case Stage::kSecondBB: return v[0] * op.backward_b(D(v[1]), D(v[2]), D(v[3], 1.0)).d;
  }
  fail("stage {} is unknown", static_cast<int>(stage));
}

template <class F>
int64_t binary_of_integers(const void* f, const int64_t* v) {
  return static_cast<const F*>(f)->forward(v[0], v[1]);
}

void offer_functor(const Functor& f, Stage stage, const Problem<NoParams>& p, Candidates& candidates) {
  const Elements y(p.out[0]);
  const bool integers = !is_floating(y.dtype());
  if (integers ? !f.of_integers || stage != Stage::kForward : !computes_on(y.dtype())) return;
  std::vector<Elements> operands;
  for (const TensorSpec& x : p.in) operands.emplace_back(x, p.out[0].rank());
  offer("elementwise", candidates, [=](const Launch& l) {
    const void* attributes = f.attributes.data();
    parallel_for_each_index(y.shape(), [&](const Index& i) {
      if (integers) {
        int64_t v[kMostOperands];
        for (size_t k = 0; k < operands.size(); ++k) v[k] = operands[k].load_integer(l.in[k], i);
        y.store_integer(l.out[0], i, f.of_integers(attributes, v));
      } else {
        double v[kMostOperands];
        for (size_t k = 0; k < operands.size(); ++k) v[k] = operands[k].load(l.in[k], i);
        y.store(l.out[0], i, f.of_numbers(attributes, stage, v));
      }
    });
  });
}

}  // namespace

}  // namespace plumb::reference

namespace plumb::detail {

void offer_unary_reference(size_t functor, Stage stage, const Problem<NoParams>& p, const void* attributes,
                           Candidates& c) {
  UnaryFunctors::visit(functor, [&]<class F>() {
    reference::Functor f = reference::Functor::with_attributes(*static_cast<const F*>(attributes));
    f.of_numbers = &reference::unary<F>;
    reference::offer_functor(f, stage, p, c);
  });
}

void offer_binary_reference(size_t functor, Stage stage, const Problem<NoParams>& p, const void* attributes,
                            Candidates& c) {
  BinaryFunctors::visit(functor, [&]<class F>() {
    reference::Functor f = reference::Functor::with_attributes(*static_cast<const F*>(attributes));
    f.of_numbers = &reference::binary<F>;
    f.of_integers = &reference::binary_of_integers<F>;
    reference::offer_functor(f, stage, p, c);
  });
}

}  // namespace plumb::detail
