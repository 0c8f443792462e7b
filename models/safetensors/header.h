// The header of a safetensors file: JSON that says what each tensor is and where its data stands.
#pragma once

#include "models/safetensors.h"

namespace plumb::models::safetensors {

inline constexpr size_t kLengthBytes = 8;               // the header's length, in front of the header
inline constexpr size_t kMaxHeaderBytes = 100'000'000;  // the format's own limit

/// Throws: `file` is not a valid safetensors file, and why.
[[noreturn]] void refuse(const std::string& file, const std::string& why);

struct Header {
  std::vector<TensorFileReader::Entry> entries;  ///< in the order of their data; offsets count from the header's end
  std::map<std::string, std::string> metadata;
};
/// Reads a header whose data has so many bytes, which the tensors must cover without holes and overlaps.
Header parse_header(const std::string& file, const std::string& text, size_t data_bytes);

/// The header that is written to `file`, behind its length and padded so that the data begins at a multiple of eight
/// bytes.
std::string header_of(const std::string& file, std::span<const NamedTensor> tensors,
                      const std::map<std::string, std::string>& metadata);

}  // namespace plumb::models::safetensors
