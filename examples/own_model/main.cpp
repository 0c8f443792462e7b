// A model, an op with its gradient and a training loop of one's own, outside of the library.
#include <plumbline.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <numbers>

using namespace plumb;

// The op: snake(x) = x + sin(x)^2 (Ziyin, Hartwig, Ueda: Neural networks fail to learn periodic functions, 2020).

// A kernel gets pointers; everything about shapes was settled when it was made.
template <class F>
class MapKernel final : public Kernel {
 public:
  MapKernel(const char* name, size_t n) : Kernel(name), n_(n) {}
  void run(const Launch& l) const override {
    auto* out = static_cast<float*>(l.out[0]);
    for (size_t i = 0; i < n_; ++i) out[i] = F::at(l.in, i);
  }

 private:
  size_t n_;
};

template <class F>
void offer(const Problem<NoParams>& p, Candidates& candidates) {
  const auto n = static_cast<size_t>(p.out[0].numel());
  candidates.add("loop", [n] { return std::make_unique<MapKernel<F>>(F::kName, n); });
}

struct SnakeForward {  // y from {x}
  static constexpr char kName[] = "snake_forward";
  using Params = NoParams;
  static void cpu(const Problem<Params>& p, Candidates& candidates) { offer<SnakeForward>(p, candidates); }
  static float at(void* const* in, size_t i) {
    const float x = static_cast<const float*>(in[0])[i], s = std::sin(x);
    return x + s * s;
  }
};

struct SnakeBackward {  // dx from {dy, x}
  static constexpr char kName[] = "snake_backward";
  using Params = NoParams;
  static void cpu(const Problem<Params>& p, Candidates& candidates) { offer<SnakeBackward>(p, candidates); }
  static float at(void* const* in, size_t i) {
    return static_cast<const float*>(in[0])[i] * (1 + std::sin(2 * static_cast<const float*>(in[1])[i]));
  }
};

// The gradient is an op as well. It has no gradient of its own, and says so to whom asks for a second derivative.
Tensor snake_backward(const Tensor& dy, const Tensor& x) {
  const auto refuse = [](const Tensor&) -> Tensor { fail("snake: derivatives beyond the first are not available"); };
  return record(run<SnakeBackward>({}, {dy, x}, dy.spec()), wrt(dy, refuse), wrt(x, refuse));
}

// x of any shape and layout, f32. Keeps x.
Tensor snake(const Tensor& x) {
  PLUMB_CHECK(x.dtype() == DType::kF32, "snake: x is {}; convert it to f32", x.spec());
  return record(run<SnakeForward>({}, {x}, x.spec()),
                wrt(x, [x = Kept(x)](const Tensor& dy) { return snake_backward(dy, x()); }));
}

// The model: a struct of parameters and a function.

struct Wave {
  Tensor w1 = uniform(Shape{32, 1}, -2, 2, 1), b1 = uniform(Shape{32}, -2, 2, 2);
  Tensor w2 = uniform(Shape{1, 32}, -0.2, 0.2, 3), b2 = uniform(Shape{1}, 0, 1, 4);

  Tensor operator()(const Tensor& x) const { return linear(snake(linear(x, w1, b1)), w2, b2); }
  TensorList parameters() {
    for (Tensor* t : {&w1, &b1, &w2, &b2}) t->require_grad();
    return {w1, b1, w2, b2};
  }
};

// The training loop.

int main() {
  const Tensor x = uniform(Shape{256, 1}, -std::numbers::pi, std::numbers::pi, 5);
  Tensor y = Tensor::empty(x.spec());
  for (size_t i = 0; i < 256; ++i) y.mutable_data<float>()[i] = std::sin(3 * x.data<float>()[i]);

  Wave model;
  const TensorList parameters = model.parameters();
  optim::Adam adam(parameters, {.learning_rate = 0.01});
  double loss_of_step = 0;
  for (int step = 1; step <= 1000; ++step) {
    const Tensor loss = mse(model(x), y);
    adam.step(grad(loss, parameters));
    loss_of_step = loss.item();
    if (step % 250 == 0) std::printf("step %4d: loss %.5f\n", step, loss_of_step);
  }
  return loss_of_step < 0.02 ? 0 : 1;
}
