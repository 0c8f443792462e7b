// Golden values of networks (tests/golden/README.md): the generator of weights and images, and comparisons.
#pragma once

#include "models/network.h"
#include "tests/support/json.h"

namespace plumb::models {

using test::golden_json;
using test::Json;

/// Fills a network with the weights and statistics that its golden values are of. `listed` is the file's list of them:
/// by PyTorch's names for the resnets, and in the order of the layers for the others.
void generate(const Network& network, const Json& listed);

/// The batch "generated".
Tensor generated_images(Layout layout);

/// The labels of a batch.
Tensor labels(const Json& batch);

/// Logits must be within `tolerance` of the largest one.
void expect_logits(const Json& want, const Tensor& got, double tolerance);

/// A gradient or a statistic by its summary: the norm must be within `tolerance`, and the samples at the indices of
/// its entry in the file's list within ten times that of their root mean square.
void expect_summary(const Json& want, const Json& listed, const Tensor& got, double tolerance);

/// The running statistics of a network after one step of training.
void expect_statistics(const Json& want, const Json& listed, const Network& network, double tolerance);

}  // namespace plumb::models
