#include "models/safetensors.h"

#include <bit>
#include <cerrno>
#include <system_error>
#include <utility>

#include "models/safetensors/header.h"
#include "ops/convert.h"

namespace plumb::models {
namespace {

namespace fs = std::filesystem;
using safetensors::kLengthBytes;
using safetensors::kMaxHeaderBytes;
using safetensors::refuse;

static_assert(std::endian::native == std::endian::little, "the format is little-endian, and data is copied as it is");

void read_bytes(const std::string& file, std::FILE* stream, size_t offset, std::span<std::byte> out) {
  const bool good = ::fseeko(stream, static_cast<off_t>(offset), SEEK_SET) == 0 &&
                    std::fread(out.data(), 1, out.size(), stream) == out.size();
  PLUMB_CHECK(good, "{} cannot be read: {}", file,
              std::feof(stream) ? "it became shorter meanwhile" : std::generic_category().message(errno));
}

}  // namespace

TensorFileReader::TensorFileReader(const fs::path& path) : file_(path.string()) {
  auto [stream, bytes] = detail::open_input(path);
  stream_ = std::move(stream);
  std::setvbuf(stream_.get(), nullptr, _IONBF, 0);
  const auto size = static_cast<size_t>(bytes);
  if (size < kLengthBytes) refuse(file_, message("it is cut short: it has {} bytes", size));

  uint64_t length = 0;
  read_bytes(file_, stream_.get(), 0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > kMaxHeaderBytes) refuse(file_, message("its header has {} bytes, too many for the format", length));
  if (length > size - kLengthBytes) refuse(file_, message("it is cut short: its header has {} bytes", length));
  std::string text(length, '\0');
  read_bytes(file_, stream_.get(), kLengthBytes, std::as_writable_bytes(std::span(text)));

  const size_t begin = kLengthBytes + length;
  safetensors::Header header = safetensors::parse_header(file_, text, size - begin);
  entries_ = std::move(header.entries);
  for (Entry& e : entries_) e.offset += static_cast<int64_t>(begin);
  metadata_ = std::move(header.metadata);
}

void TensorFileReader::read(const Entry& entry, Tensor into) const {
  PLUMB_CHECK(stream_, "read: this reader of a file was moved from");
  PLUMB_CHECK(into && into.spec() == entry.spec, "{}: tensor {} is {}; read it into a tensor of that spec", file_,
              detail::in_quotes(entry.name), entry.spec);
  Tensor here = into.device().is_cpu() ? into : Tensor::empty(into.spec(), into.value->memory_class);
  dispatch_dtype(here.dtype(), [&]<class T>() {
    const std::span<T> data = here.mutable_data<T>();
    read_bytes(file_, stream_.get(), static_cast<size_t>(entry.offset), std::as_writable_bytes(data));
  });
  if (!into.device().is_cpu()) into.copy_from(here);
}

TensorFile load_safetensors(const fs::path& path) {
  const TensorFileReader reader(path);
  TensorFile file{{}, reader.metadata()};
  for (const auto& e : reader.entries()) {
    file.tensors.push_back({e.name, Tensor::empty(e.spec, MemoryClass::kParameter)});
    reader.read(e, file.tensors.back().tensor);
  }
  return file;
}

void save_safetensors(const fs::path& path, std::span<const NamedTensor> tensors,
                      const std::map<std::string, std::string>& metadata) {
  const std::string header = safetensors::header_of(path.string(), tensors, metadata);
  std::vector<std::span<const std::byte>> pieces{std::as_bytes(std::span(header))};
  std::vector<Tensor> here;
  for (const NamedTensor& t : tensors) {
    here.push_back(to(t.tensor.detached(), Device{}));
    dispatch_dtype(t.tensor.dtype(), [&]<class T>() { pieces.push_back(std::as_bytes(here.back().data<T>())); });
  }
  detail::write_file(path, pieces);
}

}  // namespace plumb::models
