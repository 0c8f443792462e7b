#include "data/cifar.h"

#include "core/error.h"
#include "data/file.h"

namespace plumb::datasets {
namespace {

const Shape kImage{3, 32, 32};

void check_size(const File& file, int64_t record_bytes, int64_t records) {
  if (records > 0) {
    PLUMB_CHECK(file.size() == records * record_bytes,
                "{}: {} is {}: it has {} bytes, expected {} ({} records of {}); download and unpack the data set again",
                file.set(), file.path(), file.size() < records * record_bytes ? "truncated" : "too long", file.size(),
                records * record_bytes, records, record_bytes);
  } else {
    PLUMB_CHECK(file.size() > 0 && file.size() % record_bytes == 0,
                "{}: {} has {} bytes, expected whole records of {}; download and unpack the data set again", file.set(),
                file.path(), file.size(), record_bytes);
  }
}

}  // namespace

Dataset read_cifar(const CifarFormat& format, std::span<const std::filesystem::path> files, Split split,
                   int64_t records_per_file) {
  const int64_t label_bytes = format.coarse_classes > 0 ? 2 : 1;
  const int64_t record_bytes = label_bytes + kImage.numel();
  std::vector<File> open;
  int64_t count = 0;
  for (const auto& path : files) {
    const File& file = open.emplace_back(format.name, path);
    check_size(file, record_bytes, records_per_file);
    count += file.size() / record_bytes;
  }
  Dataset set = Dataset::make(format.name, split, kImage, format.classes, count);
  for (const File& file : open) set.files.push_back(file.path());
  int64_t next = 0;
  for (File& file : open) {
    for (int64_t record = 0; record < file.size() / record_bytes; ++record, ++next) {
      uint8_t labels[2] = {};
      file.read({labels, static_cast<size_t>(label_bytes)});
      const int64_t label = labels[label_bytes - 1];
      PLUMB_CHECK(label < format.classes,
                  "{}: {} has label {} in record {}, expected 0 to {}; the file is damaged or of another data set",
                  file.set(), file.path(), label, record, format.classes - 1);
      PLUMB_CHECK(
          label_bytes == 1 || labels[0] < format.coarse_classes,
          "{}: {} has coarse label {} in record {}, expected 0 to {}; the file is damaged or of another data set",
          file.set(), file.path(), static_cast<int>(labels[0]), record, format.coarse_classes - 1);
      set.labels[static_cast<size_t>(next)] = label;
      file.read(set.pixels_of(next));
    }
  }
  return set;
}

Dataset read_cifar10(const std::filesystem::path& folder, Split split) {
  const bool train = split == Split::kTrain;
  const auto in =
      find_folder(kCifar10.name, folder, "cifar-10-batches-bin", train ? "data_batch_1.bin" : "test_batch.bin");
  std::vector<std::filesystem::path> files;
  for (int i = 1; train && i <= 5; ++i) files.push_back(in / message("data_batch_{}.bin", i));
  if (!train) files.push_back(in / "test_batch.bin");
  return read_cifar(kCifar10, files, split, 10000);
}

Dataset read_cifar100(const std::filesystem::path& folder, Split split) {
  const bool train = split == Split::kTrain;
  const char* name = train ? "train.bin" : "test.bin";
  const std::filesystem::path file = find_folder(kCifar100.name, folder, "cifar-100-binary", name) / name;
  return read_cifar(kCifar100, {&file, 1}, split, train ? 50000 : 10000);
}

}  // namespace plumb::datasets
