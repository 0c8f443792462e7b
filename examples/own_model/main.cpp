// A model, an op with its gradient and a training loop of one's own, outside of the library.
//   own_model [DEVICE]     cpu by default
#include <cmath>
#include <cstdio>
#include <exception>
#include <numbers>

#include "snake.h"

using namespace plumb;

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

int train(Device device) {
  const Tensor x = uniform(Shape{256, 1}, -std::numbers::pi, std::numbers::pi, 5);
  Tensor y = Tensor::empty(x.spec());
  for (size_t i = 0; i < 256; ++i) y.mutable_data<float>()[i] = std::sin(3 * x.data<float>()[i]);

  const DeviceScope on(device);  // where what is made from here on lies
  const Tensor inputs = to(x, device), targets = to(y, device);
  Wave model;
  const TensorList parameters = model.parameters();
  optim::Adam adam(parameters, {.learning_rate = 0.01});
  double loss_of_step = 0;
  for (int step = 1; step <= 1000; ++step) {
    const Tensor loss = mse(model(inputs), targets);
    adam.step(grad(loss, parameters));
    if (step % 250 != 0) continue;
    loss_of_step = loss.item();  // waits for the device
    std::printf("step %4d: loss %.5f\n", step, loss_of_step);
  }
  return loss_of_step < 0.02 ? 0 : 1;
}

int main(int count, char** arguments) {
  try {
    return train(count > 1 ? device_from_string(arguments[1]) : Device{});
  } catch (const std::exception& e) {
    std::fprintf(stderr, "own_model: %s\n", e.what());
    return 2;
  }
}
