#include "train/evaluation.h"

#include <algorithm>

#include "ops/convert.h"
#include "ops/cross_entropy.h"
#include "ops/reduce.h"

namespace plumb::training {

int64_t count_correct(const Tensor& predictions, const Tensor& labels) {
  const Tensor predicted = to(predictions, Device{}), known = to(labels, Device{});
  const auto p = predicted.data<int64_t>(), l = known.data<int64_t>();
  int64_t correct = 0;
  for (size_t i = 0; i < p.size(); ++i) correct += p[i] == l[i];
  return correct;
}

Evaluation evaluate(const models::Network& network, datasets::Loader& loader) {
  const NoGrad no_grad;
  Evaluation e;
  datasets::Batch batch;
  loader.start_epoch(0);
  while (loader.next(batch)) {
    const Tensor logits = to(network.forward(batch.images, models::ForwardContext{}), DType::kF32);
    e.loss += cross_entropy(logits, batch.labels).item() * static_cast<double>(batch.count);
    e.correct += count_correct(argmax(logits, {1}), batch.labels);
    e.total += batch.count;
  }
  e.loss /= static_cast<double>(std::max<int64_t>(e.total, 1));
  return e;
}

}  // namespace plumb::training
