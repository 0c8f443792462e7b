// The op's shape rule and gradient, and its kernels for the CPU.
#include "snake.h"

#include <memory>

using namespace plumb;

namespace {

// A kernel gets pointers; everything about shapes was settled when it was made.
template <class F>
class MapKernel final : public Kernel {
 public:
  MapKernel(const char* name, int64_t n, F f) : Kernel(name), n_(n), f_(f) {}
  void run(const Launch& l) const override {
    for (int64_t i = 0; i < n_; ++i) f_(l, i);
  }

 private:
  int64_t n_;
  F f_;
};

template <class F>
void offer(const char* name, const Problem<NoParams>& p, Candidates& candidates, F f) {
  candidates.add("loop", [=, n = p.out[0].numel()] { return std::make_unique<MapKernel<F>>(name, n, f); });
}

const float* floats(const void* p) { return static_cast<const float*>(p); }

// The gradient is an op as well. It has no gradient of its own, and says so to whom asks for a second derivative.
Tensor snake_backward(const Tensor& dy, const Tensor& x) {
  const auto refuse = [](const Tensor&) -> Tensor { fail("snake: derivatives beyond the first are not available"); };
  return record(run<SnakeBackward>({}, {dy, x}, dy.spec()), wrt(dy, refuse), wrt(x, refuse));
}

}  // namespace

void SnakeForward::cpu(const Problem<Params>& p, Candidates& candidates) {
  offer(kName, p, candidates,
        [](const Launch& l, int64_t i) { static_cast<float*>(l.out[0])[i] = snake_of(floats(l.in[0])[i]); });
}

void SnakeBackward::cpu(const Problem<Params>& p, Candidates& candidates) {
  offer(kName, p, candidates, [](const Launch& l, int64_t i) {
    static_cast<float*>(l.out[0])[i] = floats(l.in[0])[i] * slope_of_snake(floats(l.in[1])[i]);
  });
}

Tensor snake(const Tensor& x) {
  PLUMB_CHECK(x.dtype() == DType::kF32, "snake: x is {}; convert it to f32", x.spec());
  return record(run<SnakeForward>({}, {x}, x.spec()),
                wrt(x, [x = SavedTensor(x)](const Tensor& dy) { return snake_backward(dy, x()); }));
}
