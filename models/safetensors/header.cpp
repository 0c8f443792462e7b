#include "models/safetensors/header.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

namespace plumb::models::safetensors {

using detail::in_quotes;
namespace {

using Json = nlohmann::json;
using Entry = TensorFileReader::Entry;

constexpr const char* kMetadata = "__metadata__";
constexpr std::array<const char*, kDTypeCount> kDTypeNames = {"F32", "F64", "F16", "BF16", "I32", "I64", "U8"};

/// Reads the header's JSON piece by piece, without a tree of it, and stops at the first piece that does not belong: so
/// nesting, repeated names and endless lists cost nothing. The offsets of the entries count from the header's end.
class HeaderParser final : public nlohmann::json_sax<Json> {
 public:
  explicit HeaderParser(const std::string& file) : file_(file) {}
  std::vector<Entry> entries;
  std::map<std::string, std::string> metadata;

  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("a boolean"); }
  bool binary(binary_t&) override { unexpected("binary data"); }
  bool number_integer(number_integer_t v) override { unexpected(std::to_string(v)); }
  bool number_float(number_float_t, const string_t& text) override { unexpected(in_quotes(text)); }
  bool number_unsigned(number_unsigned_t v) override {
    if (at_ != At::kNumbers || v > static_cast<uint64_t>(INT64_MAX)) unexpected(std::to_string(v));
    const bool is_shape = field_ == "shape";
    PLUMB_CHECK(!is_shape || count_ < kMaxRank, "{}: {} has more than {} dimensions; no tensor here has", file_, what(),
                kMaxRank);
    if (!is_shape && count_ == 2) refuse(message("the {} of {} has more than 2 numbers", field_, what()));
    numbers_[count_++] = static_cast<int64_t>(v);
    return true;
  }
  bool string(string_t& text) override {
    if (at_ == At::kText) {
      metadata[field_] = text;
    } else if (at_ == At::kTensor && field_ == "dtype") {
      const auto found = std::find(kDTypeNames.begin(), kDTypeNames.end(), text);
      PLUMB_CHECK(found != kDTypeNames.end(), "{}: {} has dtype {}; supported are F32, F64, F16, BF16, I32, I64 and U8",
                  file_, what(), in_quotes(text));
      dtype_ = static_cast<DType>(found - kDTypeNames.begin());
    } else {
      unexpected(in_quotes(text));
    }
    return true;
  }
  bool start_object(size_t) override {
    if (at_ != At::kStart && at_ != At::kHeader) unexpected("an object");
    at_ = at_ == At::kStart ? At::kHeader : name_ == kMetadata ? At::kText : At::kTensor;
    fields_.clear();
    return true;
  }
  bool key(string_t& text) override {
    if (at_ == At::kHeader) {
      name_ = text;
      if (!names_.insert(text).second) refuse("it has " + what() + " twice");
      return true;
    }
    field_ = text;
    if (!fields_.insert(text).second) refuse(what() + " has " + in_quotes(text) + " twice");
    if (at_ == At::kTensor && text != "dtype" && text != "shape" && text != "data_offsets") {
      refuse(what() + " has the unknown field " + in_quotes(text));
    }
    return true;
  }
  bool end_object() override {
    if (at_ == At::kTensor) add_entry();
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
    if (field_ == "data_offsets") {
      if (count_ != 2) refuse("the data_offsets of " + what() + " are not two numbers");
      offsets_.emplace(numbers_[0], numbers_[1]);
      return true;
    }
    try {
      shape_ = Shape(std::span<const int64_t>(numbers_.data(), count_));
    } catch (const Error& e) {
      refuse(what() + ": " + e.what());
    }
    return true;
  }
  bool parse_error(size_t position, const std::string&, const Json::exception&) override {
    refuse(message("its header is not JSON at byte {}", position));
  }

 private:
  enum class At { kStart, kHeader, kText, kTensor, kNumbers };

  std::string what() const { return (name_ == kMetadata ? "the entry " : "tensor ") + in_quotes(name_); }
  [[noreturn]] void refuse(const std::string& why) const { safetensors::refuse(file_, why); }
  [[noreturn]] void unexpected(const std::string& found) const {
    if (at_ == At::kHeader) refuse(message("{} is {}, not an object", what(), found));
    if (at_ == At::kText) refuse(message("{} in {} is {}, not a text", in_quotes(field_), what(), found));
    if (at_ == At::kNumbers) {
      refuse(message("the {} of {} has {}, not a whole number from 0 to {}", field_, what(), found, INT64_MAX));
    }
    refuse(message("the {} of {} is {}, not a {}", field_, what(), found, field_ == "dtype" ? "text" : "list"));
  }
  void add_entry() {
    const char* missing = !dtype_ ? "dtype" : !shape_ ? "shape" : !offsets_ ? "data_offsets" : nullptr;
    if (missing) refuse(what() + " has no " + missing);
    const auto [begin, end] = *offsets_;
    if (end < begin) refuse(message("the data of {} ends at byte {}, before it begins at {}", what(), end, begin));
    const TensorSpec spec(*shape_, *dtype_);
    if (static_cast<size_t>(end - begin) != spec.bytes()) {
      refuse(message("{} has {} bytes of data, but {} takes {}", what(), end - begin, spec, spec.bytes()));
    }
    entries.push_back({name_, spec, begin});
    dtype_.reset(), shape_.reset(), offsets_.reset();
  }

  const std::string& file_;
  At at_ = At::kStart;
  std::string name_, field_;
  std::set<std::string> names_, fields_;
  std::array<int64_t, kMaxRank> numbers_{};
  size_t count_ = 0;
  std::optional<DType> dtype_;
  std::optional<Shape> shape_;
  std::optional<std::pair<int64_t, int64_t>> offsets_;
};

/// Puts entries in the order of their data and checks that it covers all `bytes` of it without holes and overlaps.
void order_and_cover(const std::string& file, std::vector<Entry>& entries, size_t bytes) {
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.offset, a.spec.bytes()) < std::pair(b.offset, b.spec.bytes());
  });
  size_t covered = 0;
  for (const Entry& e : entries) {
    const auto begin = static_cast<size_t>(e.offset), end = begin + e.spec.bytes();
    const std::string whose = "the data of tensor " + in_quotes(e.name);
    if (begin < covered) refuse(file, whose + " overlaps that of another");
    if (begin > covered) refuse(file, message("{} bytes before {} belong to no tensor", begin - covered, whose));
    if (end > bytes) refuse(file, message("it is cut short: {} ends at byte {} of {}", whose, end, bytes));
    covered = end;
  }
  if (covered < bytes) refuse(file, message("{} bytes after the last tensor belong to none", bytes - covered));
}

std::string json_of(const std::string& file, const std::string& text) {
  try {
    return Json(text).dump();
  } catch (const Json::exception&) {
    fail("{} cannot be written: the text {} is not UTF-8", file, in_quotes(text));
  }
}

}  // namespace

void refuse(const std::string& file, const std::string& why) {
  fail("{} is not a valid safetensors file: {}", file, why);
}

Header parse_header(const std::string& file, const std::string& text, size_t data_bytes) {
  if (!text.starts_with('{')) refuse(file, "its header does not begin with {");
  if (text.find('\0') != text.npos) refuse(file, "its header has a zero byte");  // where the parser would stop
  HeaderParser parser(file);
  Json::sax_parse(text, &parser);
  order_and_cover(file, parser.entries, data_bytes);
  return {std::move(parser.entries), std::move(parser.metadata)};
}

std::string header_of(const std::string& file, std::span<const NamedTensor> tensors,
                      const std::map<std::string, std::string>& metadata) {
  std::string text;
  const auto add = [&](const std::string& key, const std::string& value) {
    text += (text.empty() ? "" : ",") + json_of(file, key) + ":" + value;
  };
  for (const auto& [key, value] : metadata) add(key, json_of(file, value));
  if (!metadata.empty()) text = json_of(file, kMetadata) + ":{" + text + "}";
  std::set<std::string_view> names{kMetadata};
  size_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    PLUMB_CHECK(tensor, "{} cannot be written: tensor {} is empty", file, in_quotes(name));
    PLUMB_CHECK(names.insert(name).second, "{} cannot be written: the name {} is taken", file, in_quotes(name));
    PLUMB_CHECK(tensor.layout() == Layout::kNchw, "{} cannot be written: tensor {} is in layout {}; convert it to nchw",
                file, in_quotes(name), tensor.layout());
    const Json shape = std::vector<int64_t>(tensor.shape().begin(), tensor.shape().end());
    const Json offsets = {offset, offset + tensor.bytes()};
    add(name, std::string("{\"dtype\":\"") + kDTypeNames[static_cast<size_t>(tensor.dtype())] +
                  "\",\"shape\":" + shape.dump() + ",\"data_offsets\":" + offsets.dump() + "}");
    offset += tensor.bytes();
  }
  text = "{" + text + "}";
  text.append((8 - text.size() % 8) % 8, ' ');
  PLUMB_CHECK(text.size() <= kMaxHeaderBytes, "{} cannot be written: its header has {} bytes, the format allows {}",
              file, text.size(), kMaxHeaderBytes);
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), kLengthBytes) + text;
}

}  // namespace plumb::models::safetensors
