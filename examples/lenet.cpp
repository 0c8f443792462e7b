// Trains LeNet on MNIST: plumb_example_lenet FOLDER, or on 2000 synthetic images without a folder.
#include <plumbline.h>

#include <cstdio>

using namespace plumb;

double train(const datasets::Dataset& images, const datasets::Dataset& unseen) {
  auto network = models::make_network("lenet");
  auto adam = optim::make(optim::Kind::kAdam, network->trainable(), {.learning_rate = 1e-3});
  training::Trainer trainer(std::move(network), std::move(adam), images, unseen, {.batch = 100, .seed = 1});
  double reached = 0;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    reached = trainer.run_epoch(epoch).test_accuracy;
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
