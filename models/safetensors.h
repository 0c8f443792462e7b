// The safetensors format, as PyTorch and others read and write it: named tensors and text in one file, without code.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "../core/file.h"
#include "network.h"

namespace plumb::models {

/// What a safetensors file holds: tensors in the order of their data, and free text by name.
struct TensorFile {
  std::vector<NamedTensor> tensors;
  std::map<std::string, std::string> metadata;
};

/// An open safetensors file whose header was read and checked, and whose tensors are read one by one when asked for.
/// The checks are those of the format: the tensors' data covers the file without holes and overlaps, so that what is
/// allocated for them is never more than the file is long.
class TensorFileReader {
 public:
  struct Entry {
    std::string name;
    TensorSpec spec;     ///< row-major
    int64_t offset = 0;  ///< of the first byte in the file
  };

  /// Opens a file and reads its header. Throws one sentence that names the file and, where there is one, the tensor,
  /// for whatever is not as the format asks, for dtypes other than F32, F64, F16, BF16, I32, I64 and U8, and for ranks
  /// above six.
  explicit TensorFileReader(const std::filesystem::path& path);

  const std::string& file() const { return file_; }
  /// The tensors in the order of their data.
  const std::vector<Entry>& entries() const { return entries_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  /// Reads the data of an entry into a tensor of exactly its spec. One thread at a time.
  void read(const Entry& entry, Tensor into) const;

 private:
  std::string file_;
  detail::FilePointer stream_;
  std::vector<Entry> entries_;
  std::map<std::string, std::string> metadata_;
};

/// Reads all tensors of a file, straight from it into parameter memory. Throws as TensorFileReader does.
TensorFile load_safetensors(const std::filesystem::path& path);

/// Writes tensors in the given order: the same tensors give the same bytes. An old file stays whole whatever happens
/// (write_file). Throws a sentence when two tensors share a name, one is not row-major, a text is not UTF-8, or the
/// file cannot be written.
void save_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                      const std::map<std::string, std::string>& metadata = {});

}  // namespace plumb::models
