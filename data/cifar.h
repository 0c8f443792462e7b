// The binary files of CIFAR-10 and CIFAR-100 (Krizhevsky: Learning multiple layers of features from tiny images; 2009).
#pragma once

#include <filesystem>
#include <span>

#include "dataset.h"

namespace plumb::datasets {

/// What a record holds before its 3 x 32 x 32 bytes of pixels: a coarse label where there are coarse classes, and a
/// label.
struct CifarFormat {
  std::string_view name;
  int64_t classes;
  int64_t coarse_classes;  ///< 0: records have one label
};
inline constexpr CifarFormat kCifar10{"cifar10", 10, 0};
inline constexpr CifarFormat kCifar100{"cifar100", 100, 20};

/// The records of these files, one after the other. Throws if a file does not have `records_per_file` records (0: any
/// whole number of them, at least one) or a label is out of range.
Dataset read_cifar(const CifarFormat& format, std::span<const std::filesystem::path> files, Split split,
                   int64_t records_per_file);
/// data_batch_1.bin ... data_batch_5.bin or test_batch.bin, 10,000 records each, in `folder` or its
/// cifar-10-batches-bin.
Dataset read_cifar10(const std::filesystem::path& folder, Split split);
/// train.bin (50,000 records) or test.bin (10,000) in `folder` or its cifar-100-binary; fine labels.
Dataset read_cifar100(const std::filesystem::path& folder, Split split);

}  // namespace plumb::datasets
