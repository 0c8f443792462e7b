// Trains LeNet on MNIST: plumb_example_lenet FOLDER, or on 2000 synthetic images without a folder.
#include <plumbline.h>

#include <cstdio>

using namespace plumb;

double accuracy(const models::Network& network, const data::Dataset& images) {
  data::Loader loader(images, {.batch = 500, .shuffle = false});
  loader.start_epoch(0);
  int64_t correct = 0;
  for (data::Batch batch; loader.next(batch);) {
    const Tensor answers = argmax(network.forward(batch.images, {}), {1});
    const auto is = answers.data<int64_t>(), should_be = batch.labels.data<int64_t>();
    for (size_t i = 0; i < is.size(); ++i) correct += is[i] == should_be[i];
  }
  return static_cast<double>(correct) / static_cast<double>(images.size());
}

int main(int argc, char** argv) {
  const bool real = argc > 1;
  const auto train = real ? data::load("mnist", argv[1], data::Split::kTrain)
                          : data::synthetic_like("mnist", data::Split::kTrain, 0, 2000);
  const auto test = real ? data::load("mnist", argv[1], data::Split::kTest)
                         : data::synthetic_like("mnist", data::Split::kTest, 0, 500);

  const auto network = models::make_network("lenet");
  optim::Adam adam(network->trainable(), {.learning_rate = 1e-3});
  Generator generator(1);
  data::Loader loader(train, {.batch = 100});
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    loader.start_epoch(epoch);
    for (data::Batch batch; loader.next(batch);) {
      const Tensor logits = network->forward(batch.images, {.train = true, .generator = &generator});
      adam.step(grad(cross_entropy(logits, batch.labels), network->trainable()));
    }
    std::printf("epoch %d: test accuracy %.4f\n", static_cast<int>(epoch + 1), accuracy(*network, test));
  }
  return accuracy(*network, test) > 0.5 ? 0 : 1;
}
