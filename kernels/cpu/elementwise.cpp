#include "kernels/elementwise.h"

#include "kernels/cpu/element.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/strided.h"

namespace plumb::cpu {
namespace {

// ---- what each stage computes, as a function of its operands in the compute type

template <class F, Stage S>
struct UnaryStage {
  static constexpr size_t kInputs = S == Stage::kForward ? 1 : (S == Stage::kBackward ? 2 : 3);
  F f;
  template <class C>
  C operator()(const std::array<C, kInputs>& in) const {
    if constexpr (S == Stage::kForward) {
      return f.forward(in[0]);
    } else if constexpr (S == Stage::kBackward) {
      return f.backward(in[0], in[1]);
    } else {
      return in[0] * f.backward(Dual<C>(in[1]), Dual<C>(in[2], C(1))).d;
    }
  }
};

template <class F, Stage S>
struct BinaryStage {
  static constexpr size_t kInputs = S == Stage::kForward ? 2 : (is_second(S) ? 4 : 3);
  F f;
  template <class C>
  C operator()(const std::array<C, kInputs>& in) const {
    if constexpr (S == Stage::kForward) {
      return f.forward(in[0], in[1]);
    } else if constexpr (S == Stage::kBackward) {
      return f.backward_a(in[0], in[1], in[2]);
    } else if constexpr (S == Stage::kBackwardB) {
      return f.backward_b(in[0], in[1], in[2]);
    } else {
      constexpr bool by_a = S == Stage::kSecond || S == Stage::kSecondBA;
      const Dual<C> dy(in[1]), a(in[2], C(by_a ? 1 : 0)), b(in[3], C(by_a ? 0 : 1));
      if constexpr (S == Stage::kSecond || S == Stage::kSecondAB) {
        return in[0] * f.backward_a(dy, a, b).d;
      } else {
        return in[0] * f.backward_b(dy, a, b).d;
      }
    }
  }
};

// ---- all operands of one spec: one flat loop

template <class Op, class T>
class FlatKernel final : public Kernel {
 public:
  FlatKernel(const char* name, Op op, int64_t n) : Kernel(name), op_(op), n_(n) {}
  void run(const Launch& l) const override {
    parallel_for(n_, kGrainBytes / static_cast<int64_t>(sizeof(T)), 64, [&](int64_t begin, int64_t end) {
      auto* out = static_cast<T*>(l.out[0]);
      std::array<const T*, Op::kInputs> in;
      for (size_t k = 0; k < Op::kInputs; ++k) in[k] = static_cast<const T*>(l.in[k]);
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) {
        std::array<Compute<T>, Op::kInputs> v;
        for (size_t k = 0; k < Op::kInputs; ++k) v[k] = load(in[k] + i);
        store(out + i, op_(v));
      }
    });
  }

 private:
  Op op_;
  int64_t n_;
};

// ---- operands that broadcast: rows along the innermost dimension, each operand there contiguous or constant

template <class Op, class T>
class BroadcastKernel final : public Kernel {
 public:
  using Loop = StridedLoop<Op::kInputs>;
  BroadcastKernel(const char* name, Op op, const Loop& loop) : Kernel(name), op_(op), loop_(loop) {}
  void run(const Launch& l) const override {
    const int64_t width = loop_.extent[0];
    const int64_t grain = std::max<int64_t>(1, kGrainBytes / static_cast<int64_t>(sizeof(T)) / std::max<int64_t>(width, 1));
    parallel_for(loop_.rows(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const auto at = loop_.row_offsets(row);
        std::array<const T*, Op::kInputs> in;
        for (size_t k = 0; k < Op::kInputs; ++k) in[k] = static_cast<const T*>(l.in[k]) + at[k];
        run_row(static_cast<T*>(l.out[0]) + row * width, in);
      }
    });
  }

 private:
  static constexpr size_t kLast = Op::kInputs - 1;
  void run_row(T* out, const std::array<const T*, Op::kInputs>& in) const {
    bool dense = true, last_constant = loop_.stride[kLast][0] == 0;
    for (size_t k = 0; k < kLast; ++k) dense &= loop_.stride[k][0] == 1;
    if (dense && loop_.stride[kLast][0] == 1) {
      row_of(out, in, [](size_t) { return int64_t{1}; });
    } else if (dense && last_constant) {
      row_of(out, in, [](size_t k) { return int64_t{k != kLast}; });
    } else {
      row_of(out, in, [&](size_t k) { return loop_.stride[k][0]; });
    }
  }
  template <class StrideOf>
  void row_of(T* out, const std::array<const T*, Op::kInputs>& in, StrideOf stride) const {
    const int64_t width = loop_.extent[0];
#pragma GCC ivdep
    for (int64_t i = 0; i < width; ++i) {
      std::array<Compute<T>, Op::kInputs> v;
      for (size_t k = 0; k < Op::kInputs; ++k) v[k] = load(in[k] + i * stride(k));
      store(out + i, op_(v));
    }
  }
  Op op_;
  Loop loop_;
};

template <class Op, class T>
void add_candidate(const char* name, Op op, const Problem<NoParams>& p, Candidates& candidates) {
  bool flat = true;
  std::array<Strides, Op::kInputs> strides;
  for (size_t k = 0; k < Op::kInputs; ++k) {
    flat &= p.in[k] == p.out[0];
    strides[k] = broadcast_strides(p.in[k], p.out[0].shape);
  }
  const auto loop = strided_loop(p.out[0], strides);
  candidates.add("loop", [=, n = p.out[0].numel()]() -> std::unique_ptr<Kernel> {
    if (flat) return std::make_unique<FlatKernel<Op, T>>(name, op, n);
    return std::make_unique<BroadcastKernel<Op, T>>(name, op, loop);
  });
}

template <class Op>
void offer_floating(const char* name, Op op, const Problem<NoParams>& p, Candidates& c) {
  dispatch_compute(p.out[0].dtype, [&]<class T>() { add_candidate<Op, T>(name, op, p, c); });
}

template <class F, Stage S>
void offer_unary_stage(const Problem<NoParams>& p, const void* f, Candidates& c) {
  offer_floating("plumb:elementwise", UnaryStage<F, S>{*static_cast<const F*>(f)}, p, c);
}

template <class F, Stage S>
void offer_binary_stage(const Problem<NoParams>& p, const void* f, Candidates& c) {
  const BinaryStage<F, S> op{*static_cast<const F*>(f)};
  const DType t = p.out[0].dtype;
  if constexpr (S == Stage::kForward) {
    if (t == DType::kI32) return add_candidate<BinaryStage<F, S>, int32_t>("plumb:elementwise", op, p, c);
    if (t == DType::kI64) return add_candidate<BinaryStage<F, S>, int64_t>("plumb:elementwise", op, p, c);
    if (t == DType::kU8) return add_candidate<BinaryStage<F, S>, uint8_t>("plumb:elementwise", op, p, c);
  }
  offer_floating("plumb:elementwise", op, p, c);
}

using Offer = void (*)(const Problem<NoParams>&, const void*, Candidates&);

}  // namespace

void offer_unary(size_t functor, Stage stage, const Problem<NoParams>& p, const void* f, Candidates& c) {
  size_t i = 0;
  UnaryFunctors::for_each([&]<class F>() {
    if (i++ != functor) return;
    const Offer offer = stage == Stage::kForward    ? &offer_unary_stage<F, Stage::kForward>
                        : stage == Stage::kBackward ? &offer_unary_stage<F, Stage::kBackward>
                                                    : &offer_unary_stage<F, Stage::kSecond>;
    offer(p, f, c);
  });
}

void offer_binary(size_t functor, Stage stage, const Problem<NoParams>& p, const void* f, Candidates& c) {
  size_t i = 0;
  BinaryFunctors::for_each([&]<class F>() {
    if (i++ != functor) return;
    switch (stage) {
      case Stage::kForward: return offer_binary_stage<F, Stage::kForward>(p, f, c);
      case Stage::kBackward: return offer_binary_stage<F, Stage::kBackward>(p, f, c);
      case Stage::kBackwardB: return offer_binary_stage<F, Stage::kBackwardB>(p, f, c);
      case Stage::kSecond: return offer_binary_stage<F, Stage::kSecond>(p, f, c);
      case Stage::kSecondAB: return offer_binary_stage<F, Stage::kSecondAB>(p, f, c);
      case Stage::kSecondBA: return offer_binary_stage<F, Stage::kSecondBA>(p, f, c);
      case Stage::kSecondBB: return offer_binary_stage<F, Stage::kSecondBB>(p, f, c);
    }
  });
}

}  // namespace plumb::cpu
