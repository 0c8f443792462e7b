// Trains LeNet on MNIST: plumb_example_lenet FOLDER, or on 2000 synthetic images without a folder.
#include <plumbline.h>

#include <cstdio>

using namespace plumb;

double accuracy(const models::Network& network, const datasets::Dataset& images) {
  const NoGrad no_grad;
  datasets::Loader loader(images, {.batch = 500, .shuffle = false});
  loader.start_epoch(0);
  int64_t correct = 0;
  for (datasets::Batch batch; loader.next(batch);) {
    const Tensor answers = argmax(network.forward(batch.images, {}), {1});
    const auto is = answers.data<int64_t>(), should_be = batch.labels.data<int64_t>();
    for (size_t i = 0; i < is.size(); ++i) correct += is[i] == should_be[i];
  }
  return static_cast<double>(correct) / static_cast<double>(images.size());
}

double train(const datasets::Dataset& images, const datasets::Dataset& unseen) {
  const auto network = models::make_network("lenet");
  optim::Adam adam(network->trainable(), {.learning_rate = 1e-3});
  Generator generator(1);
  datasets::Loader loader(images, {.batch = 100});
  double reached = 0;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    loader.start_epoch(epoch);
    for (datasets::Batch batch; loader.next(batch);) {
      const Tensor logits = network->forward(batch.images, models::ForwardContext::training(generator));
      adam.step(grad(cross_entropy(logits, batch.labels), network->trainable()));
    }
    reached = accuracy(*network, unseen);
    std::printf("epoch %d: test accuracy %.4f\n", static_cast<int>(epoch + 1), reached);
  }
  return reached;
}

int main(int argc, char** argv) try {
  const auto images = [&](datasets::Split split, int64_t count) {
    return argc > 1 ? datasets::load("mnist", argv[1], split) : datasets::synthetic_like("mnist", split, 0, count);
  };
  return train(images(datasets::Split::kTrain, 2000), images(datasets::Split::kTest, 500)) > 0.5 ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "plumb_example_lenet: %s; give no argument, or the folder of MNIST's files\n", e.what());
  return 2;
}
