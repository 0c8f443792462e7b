#include "ops/elementwise.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "core/tape.h"
#include "dispatch/gate.h"
#include "kernels/elementwise.h"
#include "ops/reduce.h"

namespace plumb {

using detail::Binary;
using detail::Stage;
using detail::Unary;

TensorSpec broadcast_spec(const char* op, const TensorSpec& a, const TensorSpec& b) {
  PLUMB_CHECK(a.dtype == b.dtype, "{}: a is {} and b is {}; convert one of them with to(dtype)", op, a.dtype, b.dtype);
  const int rank = std::max(a.rank(), b.rank());
  int64_t extents[kMaxRank];
  for (int d = 1; d <= rank; ++d) {
    const int64_t ea = d <= a.rank() ? a.shape[-d] : 1, eb = d <= b.rank() ? b.shape[-d] : 1;
    PLUMB_CHECK(ea == eb || ea == 1 || eb == 1, "{}: a {} and b {} do not broadcast to one shape", op, a.shape,
                b.shape);
    extents[rank - d] = ea == 1 ? eb : ea;
  }
  const bool a_is_wide = a.rank() == rank;
  const TensorSpec &wide = a_is_wide ? a : b, &other = a_is_wide ? b : a;
  if (other.rank() == rank) {
    PLUMB_CHECK(other.layout == wide.layout, "{}: a is {} and b is {}; convert one of them with to(layout)", op, a, b);
  } else {
    PLUMB_CHECK(other.layout == Layout::kNchw, "{}: a is {} and b is {}; convert {} to nchw with to(layout)", op, a, b,
                a_is_wide ? "b" : "a");
  }
  return TensorSpec(Shape(std::span<const int64_t>(extents, static_cast<size_t>(rank))), a.dtype, wide.layout);
}

void detail::check_floating(const char* op, const TensorSpec& x) {
  PLUMB_CHECK(is_floating(x.dtype), "{}: x is {}; convert it to a floating dtype with to(dtype)", op, x);
}

namespace {

using detail::KernelKind;

// A functor without its type: its kernels, and its attributes as bytes. So one function serves the ops of all functors.
struct Attributes {
  alignas(8) std::byte bytes[16];
};
template <class F>
Attributes attributes_of(const F& f) {
  static_assert(sizeof f <= sizeof(Attributes) && alignof(F) <= alignof(Attributes));
  Attributes a{};
  if constexpr (!std::is_empty_v<F>) std::memcpy(a.bytes, &f, sizeof f);
  return a;
}
constexpr Attributes kNoAttributes{};
struct UnaryKinds {
  const char* name;
  Keeps keeps;
  const KernelKind *forward, *backward, *second;
};
template <class F>
constexpr UnaryKinds unary_kinds = {F::kName, F::kKeeps, &detail::kind_of<Unary<F, Stage::kForward>>,
                                    &detail::kind_of<Unary<F, Stage::kBackward>>,
                                    &detail::kind_of<Unary<F, Stage::kSecond>>};
struct BinaryKinds {
  const char* name;
  const KernelKind* of[static_cast<size_t>(Stage::kSecondBB) + 1];
  const KernelKind& operator[](Stage s) const { return *of[static_cast<size_t>(s)]; }
};
template <class F>
constexpr BinaryKinds binary_kinds = {
    F::kName,
    {&detail::kind_of<Binary<F, Stage::kForward>>, &detail::kind_of<Binary<F, Stage::kBackward>>,
     &detail::kind_of<Binary<F, Stage::kBackwardB>>, &detail::kind_of<Binary<F, Stage::kSecond>>,
     &detail::kind_of<Binary<F, Stage::kSecondAB>>, &detail::kind_of<Binary<F, Stage::kSecondBA>>,
     &detail::kind_of<Binary<F, Stage::kSecondBB>>}};

Tensor run_kind(const KernelKind& kind, const void* attributes, std::initializer_list<detail::Input> in,
                const TensorSpec& spec) {
  detail::Ref<detail::Value> y;
  detail::dispatch(kind, attributes, detail::inputs(in), {&spec, 1}, &y, {});
  return Tensor(std::move(y));
}

[[noreturn]] void refuse_third_derivative(const char* op) {
  fail("{}: derivatives beyond the second are not available", op);
}

// g d(backward of dy at v) / dv. It is linear in g and in dy, which take each other's place.
Tensor second_of(const UnaryKinds& k, const Attributes& f, const Tensor& g, const Tensor& dy, const Tensor& v) {
  const auto beside = [&](const Tensor& other) {
    return [&k, f, other = SavedTensor(other, k.name), v = SavedTensor(v, k.name)](const Tensor& h) {
      return second_of(k, f, h, other(), v());
    };
  };
  return record(run_kind(*k.second, &f, {g, dy, v}, g.spec()), wrt(g, k.name, beside(dy)), wrt(dy, k.name, beside(g)),
                wrt(v, k.name, [&k](const Tensor&) -> Tensor { refuse_third_derivative(k.name); }));
}

Tensor backward_of(const UnaryKinds& k, const Attributes& f, const Tensor& dy, const Tensor& v) {
  PLUMB_CHECK(dy && v && dy.spec() == v.spec(), "{}: dy is {} and what was kept is {}; they must be of one spec",
              k.name, dy ? to_string(dy.spec()) : "an empty tensor", v ? to_string(v.spec()) : "an empty tensor");
  Tensor dx = run_kind(*k.backward, &f, {dy, v}, dy.spec());
  if (k.keeps == Keeps::kNothing) {  // dy stands in v's place, for its spec
    return record(std::move(dx),
                  wrt(dy, k.name, [&k, f](const Tensor& g) { return backward_of(k, f, g, g.detached()); }));
  }
  return record(
      std::move(dx),
      wrt(dy, k.name, [&k, f, v = SavedTensor(v, k.name)](const Tensor& g) { return backward_of(k, f, g, v()); }),
      wrt(v, k.name, [&k, f, dy = SavedTensor(dy, k.name), v = SavedTensor(v, k.name)](const Tensor& g) {
        return second_of(k, f, g, dy(), v());
      }));
}

Tensor forward_of(const UnaryKinds& k, const Attributes& f, const Tensor& x) {
  PLUMB_CHECK(x, "{}: x is an empty tensor", k.name);
  if (!is_floating(x.dtype())) {
    PLUMB_CHECK(
        k.name != std::string_view(functors::Affine::kName),
        "affine (-x, x * 2, x + 2 and the like): x is {}; convert it to a floating dtype with to(dtype), or make "
        "a tensor of the number",
        x.spec());
    detail::check_floating(k.name, x.spec());
  }
  Tensor y = run_kind(*k.forward, &f, {x}, x.spec());
  if (k.keeps == Keeps::kInput) {
    return record(std::move(y), wrt(x, k.name, [&k, f, x = SavedTensor(x, k.name)](const Tensor& dy) {
                    return backward_of(k, f, dy, x());
                  }));
  }
  if (k.keeps == Keeps::kOutput) {
    return record(std::move(y),
                  wrt(x, k.name, [&k, f](const Tensor& dy, const Tensor& out) { return backward_of(k, f, dy, out); }));
  }
  return record(std::move(y),
                wrt(x, k.name, [&k, f](const Tensor& dy) { return backward_of(k, f, dy, dy.detached()); }));
}

// A second derivative of a binary functor, in the broadcast shape; linear in g and in dy, as above.
Tensor second_of(const BinaryKinds& k, Stage s, const Tensor& g, const Tensor& dy, const Tensor& a, const Tensor& b) {
  const auto beside = [&](Stage of, const Tensor& other) {
    return [&k, of, other = SavedTensor(other, k.name), a = SavedTensor(a, k.name),
            b = SavedTensor(b, k.name)](const Tensor& h) { return second_of(k, of, h, other(), a(), b()); };
  };
  const auto refuse = [&k](const Tensor&) -> Tensor { refuse_third_derivative(k.name); };
  return record(run_kind(k[s], &kNoAttributes, {g, dy, a, b}, g.spec()), wrt(g, k.name, beside(s, dy)),
                wrt(dy, k.name, beside(s, g)), wrt(a, refuse, k.name), wrt(b, refuse, k.name));
}

// The gradient of a binary functor with respect to one operand, in the broadcast shape. It can be differentiated once
// with respect to the operands.
Tensor binary_gradient(const BinaryKinds& k, Stage s, const Tensor& dy, const Tensor& a, const Tensor& b) {
  const bool is_by_a = s == Stage::kBackward;
  const auto by = [&](Stage second, bool of_a) {
    return [&k, second, of_a, dy = SavedTensor(dy, k.name), a = SavedTensor(a, k.name), b = SavedTensor(b, k.name)](
               const Tensor& g) { return sum_to(second_of(k, second, g, dy(), a(), b()), (of_a ? a : b)().spec()); };
  };
  return record(run_kind(k[s], &kNoAttributes, {dy, a, b}, dy.spec()),
                wrt(dy, k.name,
                    [&k, s, a = SavedTensor(a, k.name), b = SavedTensor(b, k.name)](const Tensor& g) {
                      return binary_gradient(k, s, g, a(), b());
                    }),
                wrt(a, k.name, by(is_by_a ? Stage::kSecond : Stage::kSecondBA, true)),
                wrt(b, k.name, by(is_by_a ? Stage::kSecondAB : Stage::kSecondBB, false)));
}

Tensor forward_of(const BinaryKinds& k, const Tensor& a, const Tensor& b) {
  PLUMB_CHECK(a && b, "{}: {} is an empty tensor", k.name, a ? "b" : "a");
  const TensorSpec spec = a.spec() == b.spec() ? a.spec() : broadcast_spec(k.name, a.spec(), b.spec());
  Tensor y = run_kind(k[Stage::kForward], &kNoAttributes, {a, b}, spec);
  const bool is_add = &k == &binary_kinds<functors::Add>, is_sub = &k == &binary_kinds<functors::Sub>;
  if (is_add || is_sub) {  // a's gradient is dy itself
    if (a.shape() == b.shape()) {
      return record(std::move(y), wrt(a, k.name, [](const Tensor& dy) { return dy; }),
                    wrt(b, k.name, [is_sub](const Tensor& dy) { return is_sub ? neg(dy) : dy; }));
    }
    return record(std::move(y), wrt(a, k.name, [s = a.spec()](const Tensor& dy) { return sum_to(dy, s); }),
                  wrt(b, k.name, [s = b.spec(), is_sub](const Tensor& dy) {
                    const Tensor db = sum_to(dy, s);
                    return is_sub ? neg(db) : db;
                  }));
  }
  return record(std::move(y),
                wrt(a, k.name,
                    [&k, a = SavedTensor(a, k.name), b = SavedTensor(b, k.name)](const Tensor& dy) {
                      return sum_to(binary_gradient(k, Stage::kBackward, dy, a(), b()), a().spec());
                    }),
                wrt(b, k.name, [&k, a = SavedTensor(a, k.name), b = SavedTensor(b, k.name)](const Tensor& dy) {
                  return sum_to(binary_gradient(k, Stage::kBackwardB, dy, a(), b()), b().spec());
                }));
}

}  // namespace

template <class F>
Tensor unary(F f, const Tensor& x) {
  return forward_of(unary_kinds<F>, attributes_of(f), x);
}

template <class F>
Tensor unary_backward(F f, const Tensor& dy, const Tensor& v) {
  return backward_of(unary_kinds<F>, attributes_of(f), dy, v);
}

template <class F>
Tensor binary(F, const Tensor& a, const Tensor& b) {
  static_assert(std::is_empty_v<F>);
  return forward_of(binary_kinds<F>, a, b);
}

namespace {

// The header only declares the templates: this instantiates the functions of every functor.
[[gnu::used]] constexpr auto kFunctions = []<class... U, class... B>(detail::TypeList<U...>, detail::TypeList<B...>) {
  return std::tuple(&unary<U>..., &unary_backward<U>..., &binary<B>...);
}(UnaryFunctors(), BinaryFunctors());

}  // namespace
}  // namespace plumb
