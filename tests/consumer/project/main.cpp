#include <plumbline.h>

#include <cstdio>

int main() {  // teaches one convolution to do what another does
  using namespace plumb;
  const TensorSpec images(Shape{32, 3, 16, 16}, DType::kF32, Layout::kNhwc);
  const Conv2dParams same{.padding = 1};
  const Tensor teacher = uniform(Shape{8, 3, 3, 3}, -1, 1, 1);
  Tensor w = uniform(Shape{8, 3, 3, 3}, -1, 1, 2);
  w.require_grad();
  optim::Adam adam({w}, {.learning_rate = 0.02});
  double loss_of_step = 0;
  for (uint64_t step = 0; step < 200; ++step) {
    const Tensor x = uniform(images, -1, 1, 100 + step);
    const Tensor loss = mse(conv2d(x, w, same), conv2d(x, teacher, same));
    adam.step(grad(loss, {w}));
    loss_of_step = loss.item();
  }
  std::printf("loss %g\n", loss_of_step);
  return loss_of_step < 1e-3 ? 0 : 1;
}
