// Golden values of networks (tests/golden/README.md): the generator of weights and images, and comparisons.
#pragma once

#include "models/network.h"
#include "tests/support/golden.h"

namespace plumb::models {

using test::GoldenFile;

/// What a file knows of a parameter or a statistic: its name, which is PyTorch's for the resnets, its size, its first
/// three values, and the indices that are sampled of its gradient.
struct Listed {
  std::string name;
  size_t size = 0;
  std::vector<double> first, indices;
};
/// The list of all that a network has, in the order of the layers, which is that of the generator's streams.
std::vector<Listed> listed_of(const GoldenFile& network);

/// Fills a network with the weights and statistics that its golden values are of.
void generate(const Network& network, const std::vector<Listed>& listed);

/// The batch "generated".
Tensor generated_images(Layout layout, int64_t side = 32);

/// The labels of a batch.
Tensor labels(const GoldenFile& batch);

/// Logits must be within `tolerance` of the largest one.
void expect_logits(const GoldenFile& want, const Tensor& got, double tolerance);

/// A gradient or a statistic by its summary: the norm must be within `tolerance`, and the samples at the indices of
/// its entry in the file's list within ten times that of their root mean square.
void expect_summary(const GoldenFile& want, const Listed& listed, const Tensor& got, double tolerance);

/// The running statistics of a network after one step of training.
void expect_statistics(const GoldenFile& want, const std::vector<Listed>& listed, const Network& network,
                       double tolerance);

}  // namespace plumb::models
