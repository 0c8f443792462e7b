// The idx files of MNIST (LeCun, Cortes, Burges) and of the sets that share its format.
#pragma once

#include <filesystem>

#include "dataset.h"

namespace plumb::datasets {

/// One-channel images and their labels from a pair of uncompressed idx files of bytes. Throws on a wrong magic number,
/// on a file whose size is not what its header says, on labels out of range, and if the files have different counts.
Dataset read_idx(std::string_view name, const std::filesystem::path& images, const std::filesystem::path& labels,
                 int64_t classes, Split split);
/// train-images-idx3-ubyte and train-labels-idx1-ubyte, or the t10k pair, in `folder` or its mnist. Images are 28 x 28.
Dataset read_mnist(const std::filesystem::path& folder, Split split);

}  // namespace plumb::datasets
