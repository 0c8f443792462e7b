#include "models/safetensors.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <system_error>

namespace plumb::models {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

static_assert(std::endian::native == std::endian::little, "the format is little-endian, and data is copied as it is");

constexpr uint64_t kLengthBytes = 8;                // of the header's length, in front of the header
constexpr uint64_t kMaxHeaderBytes = 100'000'000;   // the format's own limit
constexpr const char* kMetadata = "__metadata__";
constexpr std::array<const char*, kDTypeCount> kDTypeNames = {"F32", "F64", "F16", "BF16", "I32", "I64", "U8"};

std::string reason(int error) { return std::generic_category().message(error); }

/// What the header says of one tensor; offsets count from the end of the header.
struct Described {
  std::string name;
  std::optional<DType> dtype;
  std::optional<Shape> shape;
  std::optional<std::pair<uint64_t, uint64_t>> offsets;
};

/// Reads the header's JSON as it comes, without building a tree of it, and stops at the first thing that is not as the
/// format asks: so nesting, repeated names and long lists cost nothing.
class HeaderParser final : public nlohmann::json_sax<Json> {
 public:
  explicit HeaderParser(const std::string& file) : file_(file) {}
  std::vector<Described> tensors;
  std::map<std::string, std::string> metadata;

  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("a boolean"); }
  bool number_integer(number_integer_t v) override { unexpected(std::to_string(v)); }
  bool number_float(number_float_t, const string_t& text) override { unexpected("the number " + quoted(text)); }
  bool binary(binary_t&) override { unexpected("binary data"); }
  bool number_unsigned(number_unsigned_t v) override {
    if (at_ != At::kNumbers) unexpected(std::to_string(v));
    if (count_ == (field_ == "shape" ? kMaxRank : 2)) refuse("the {} of {} has more than {} numbers", field_, what(), count_);
    if (v > static_cast<uint64_t>(INT64_MAX)) unexpected(std::to_string(v));
    numbers_[count_++] = static_cast<int64_t>(v);
    return true;
  }
  bool string(string_t& text) override {
    if (at_ == At::kMetadata) {
      metadata[field_] = text;
    } else if (at_ == At::kTensor && field_ == "dtype") {
      const auto found = std::find(kDTypeNames.begin(), kDTypeNames.end(), text);
      PLUMB_CHECK(found != kDTypeNames.end(), "{}: {} has dtype {}, which is not supported; convert it to F32, F64, F16, BF16, I32, I64 or U8",
                  file_, what(), quoted(text));
      tensors.back().dtype = static_cast<DType>(found - kDTypeNames.begin());
    } else {
      unexpected("the text " + quoted(text));
    }
    return true;
  }
  bool start_object(size_t) override {
    if (at_ == At::kStart) {
      at_ = At::kHeader;
    } else if (at_ == At::kHeader) {
      at_ = name_ == kMetadata ? At::kMetadata : At::kTensor;
      if (at_ == At::kTensor) tensors.emplace_back().name = name_;
      fields_.clear();
    } else {
      unexpected("an object");
    }
    return true;
  }
  bool key(string_t& text) override {
    if (at_ == At::kHeader) {
      name_ = text;
      if (!names_.insert(text).second) refuse("it has {} twice", what());
      return true;
    }
    field_ = text;
    if (!fields_.insert(text).second) refuse("{} has {} twice", what(), quoted(text));
    if (at_ == At::kTensor && text != "dtype" && text != "shape" && text != "data_offsets") {
      refuse("{} has the unknown field {}", what(), quoted(text));
    }
    return true;
  }
  bool end_object() override {
    if (at_ == At::kTensor) finish_tensor();
    at_ = At::kHeader;
    return true;
  }
  bool start_array(size_t) override {
    if (at_ != At::kTensor || field_ == "dtype") unexpected("a list");
    at_ = At::kNumbers;
    count_ = 0;
    return true;
  }
  bool end_array() override {
    at_ = At::kTensor;
    if (field_ == "shape") {
      try {
        tensors.back().shape = Shape(std::span<const int64_t>(numbers_.data(), count_));
      } catch (const Error& e) {
        refuse("{}: {}", what(), e.what());
      }
    } else {
      if (count_ != 2) refuse("the data_offsets of {} are not two numbers", what());
      tensors.back().offsets.emplace(numbers_[0], numbers_[1]);
    }
    return true;
  }
  bool parse_error(size_t position, const std::string&, const Json::exception&) override {
    refuse("its header is not JSON from byte {} on", position);
  }

 private:
  enum class At { kStart, kHeader, kMetadata, kTensor, kNumbers };

  std::string what() const { return (name_ == kMetadata ? "the entry " : "tensor ") + quoted(name_); }
  template <class... Args>
  [[noreturn]] void refuse(std::type_identity_t<detail::MessageFormat<Args...>> format, const Args&... args) const {
    const std::string texts[] = {detail::message_argument(args)...};
    fail("{} is not a valid safetensors file: {}", file_, detail::join_message(format.text, texts));
  }
  [[noreturn]] void unexpected(const std::string& found) const {
    switch (at_) {
      case At::kStart: refuse("its header is {}, not an object", found);
      case At::kHeader: refuse("{} is {}, not an object", what(), found);
      case At::kMetadata: refuse("{} of {} is {}, not a text", quoted(field_), what(), found);
      case At::kTensor: refuse("the {} of {} is {}, not a {}", field_, what(), found, field_ == "dtype" ? "text" : "list");
      case At::kNumbers: break;
    }
    refuse("the {} of {} has {} where a whole number from 0 to {} belongs", field_, what(), found, INT64_MAX);
  }
  void finish_tensor() const {
    const Described& t = tensors.back();
    if (!t.dtype || !t.shape || !t.offsets) {
      refuse("{} has no {}", what(), !t.dtype ? "dtype" : !t.shape ? "shape" : "data_offsets");
    }
    const auto [begin, end] = *t.offsets;
    if (end < begin) refuse("the data of {} ends at {}, before it begins at {}", what(), end, begin);
    const TensorSpec spec(*t.shape, *t.dtype);
    if (end - begin != spec.bytes()) refuse("the data of {} has {} bytes, {} has {}", what(), end - begin, spec, spec.bytes());
  }

  const std::string& file_;
  At at_ = At::kStart;
  std::string name_, field_;
  std::set<std::string> names_, fields_;
  std::array<int64_t, kMaxRank> numbers_{};
  size_t count_ = 0;
};

void read_bytes(const std::string& file, std::FILE* stream, int64_t offset, std::span<std::byte> out) {
  PLUMB_CHECK(::fseeko(stream, offset, SEEK_SET) == 0, "{} cannot be read: {}", file, reason(errno));
  const size_t found = std::fread(out.data(), 1, out.size(), stream);
  PLUMB_CHECK(found == out.size(), "{} cannot be read: {}", file,
              std::feof(stream) ? "it became shorter while it was read" : reason(errno));
}

/// A file that is written aside, takes its place when it is complete, and is removed when it is not.
class FileAside {
 public:
  explicit FileAside(const fs::path& path) : path_(path), aside_(path) {
    aside_ += ".partial";
    stream_ = std::fopen(aside_.c_str(), "wbe");
    check(stream_ != nullptr);
    std::setvbuf(stream_, nullptr, _IONBF, 0);  // the pieces are large
  }
  FileAside(const FileAside&) = delete;
  FileAside& operator=(const FileAside&) = delete;
  ~FileAside() {
    if (stream_) std::fclose(stream_);
    if (!committed_) std::remove(aside_.c_str());
  }
  void write(std::span<const std::byte> bytes) { check(std::fwrite(bytes.data(), 1, bytes.size(), stream_) == bytes.size()); }
  void commit() {
    check(::fsync(::fileno(stream_)) == 0);
    check(std::fclose(std::exchange(stream_, nullptr)) == 0);
    check(std::rename(aside_.c_str(), path_.c_str()) == 0);
    committed_ = true;
    // The new name itself reaches the disk with its folder; where folders cannot be synchronised, it does so later.
    const fs::path folder = path_.has_parent_path() ? path_.parent_path() : fs::path(".");
    if (const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); fd >= 0) {
      ::fsync(fd);
      ::close(fd);
    }
  }

 private:
  void check(bool good) const { PLUMB_CHECK(good, "{} cannot be written: {}", path_.string(), reason(errno)); }
  fs::path path_, aside_;
  std::FILE* stream_ = nullptr;
  bool committed_ = false;
};

std::string json_of(const std::string& file, const std::string& text) {
  try {
    return Json(text).dump();
  } catch (const Json::exception&) {
    fail("{} cannot be written: the text {} is not UTF-8", file, quoted(text));
  }
}

/// Length and header, padded so that the data begins at a multiple of eight bytes.
std::string header_of(const std::string& file, std::span<const NamedTensor> tensors,
                      const std::map<std::string, std::string>& metadata) {
  std::string text = "{";
  const auto add = [&](const std::string& key, const std::string& value) {
    text += (text.back() == '{' ? "" : ",") + json_of(file, key) + ":" + value;
  };
  if (!metadata.empty()) {
    add(kMetadata, "{");
    for (const auto& [key, value] : metadata) add(key, json_of(file, value));
    text += "}";
  }
  std::set<std::string_view> names{kMetadata};
  uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    PLUMB_CHECK(tensor, "{} cannot be written: tensor {} is empty", file, quoted(name));
    PLUMB_CHECK(names.insert(name).second, "{} cannot be written: the name {} is taken", file, quoted(name));
    PLUMB_CHECK(tensor.layout() == Layout::kNchw, "{} cannot be written: tensor {} has layout {}; convert it with to(Layout::kNchw)",
                file, quoted(name), tensor.layout());
    std::string shape;
    for (const int64_t e : tensor.shape()) shape += (shape.empty() ? "" : ",") + std::to_string(e);
    const uint64_t end = offset + tensor.bytes();
    add(name, message("{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}", "", "", "", ""));
    offset = end;
  }
  text += "}";
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');
  PLUMB_CHECK(text.size() <= kMaxHeaderBytes, "{} cannot be written: its header has {} bytes, the format allows {}", file,
              text.size(), kMaxHeaderBytes);
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

}  // namespace
