#include "core/file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "core/error.h"

namespace plumb::detail {
namespace {

namespace fs = std::filesystem;

std::string reason(int error) { return std::generic_category().message(error); }

/// A new file beside the one that it is to replace; removed unless it takes its place.
class AtomicFile {
 public:
  AtomicFile(const fs::path& path, const std::string& called) : file_(called) {
    std::error_code error;
    const fs::file_status old = fs::status(path, error);
    const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
    check(old.type() != fs::file_type::none, error.message());
    check(!fs::is_directory(old), "it is a folder");
    check(!fs::exists(old) || fs::is_regular_file(old), "it is not a regular file");
    check(fs::exists(folder, error), message("the folder {} does not exist", folder.string()));
    check(fs::is_directory(folder, error), message("{} is a file, not a folder", folder.string()));
    check(fs::exists(old) || !fs::is_symlink(path, error), "it is a link to nothing");
    check(!fs::exists(old) || ::access(path.c_str(), W_OK) == 0);
    target_ = fs::weakly_canonical(path, error);
    for (int n = 0; !stream_; ++n) {  // a name of this run's own, so that each of two writes a whole file
      aside_ = message("{}.{}.{}.partial", target_, ::getpid(), n);
      stream_.reset(std::fopen(aside_.c_str(), "wbxe"));
      check(stream_ || errno == EEXIST);
    }
    if (fs::exists(old)) ::fchmod(::fileno(stream_.get()), static_cast<mode_t>(old.permissions()));
    std::setvbuf(stream_.get(), nullptr, _IONBF, 0);  // pieces are large
  }
  AtomicFile(const AtomicFile&) = delete;
  ~AtomicFile() {
    if (!aside_.empty()) std::remove(aside_.c_str());
  }

  void write(std::span<const std::byte> piece) const {
    check(std::fwrite(piece.data(), 1, piece.size(), stream_.get()) == piece.size());
  }
  void finish() {
    check(::fsync(::fileno(stream_.get())) == 0);
    check(std::fclose(stream_.release()) == 0);
    check(std::rename(aside_.c_str(), target_.c_str()) == 0);
    aside_.clear();
  }

 private:
  void check(bool good, const std::string& why) const { PLUMB_CHECK(good, "{} cannot be written: {}", file_, why); }
  void check(bool good) const { check(good, good ? "" : reason(errno)); }

  std::string file_, target_, aside_;
  FilePointer stream_;
};

}  // namespace

std::string on_one_line(std::string_view text) {
  std::string line(text);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  return line;
}

std::string shortened(std::string_view text) {
  constexpr size_t kMost = 80;
  return on_one_line(text.substr(0, kMost)) + (text.size() > kMost ? "..." : "");
}

std::string in_quotes(std::string_view text) { return '"' + shortened(text) + '"'; }

InputFile open_input(const fs::path& path, std::string_view whose) {
  const std::string name = std::string(whose) + path.string();
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  PLUMB_CHECK(status.type() != fs::file_type::none, "{} cannot be read: {}", name, error.message());
  PLUMB_CHECK(fs::exists(status), "{}the file {} is missing", whose, path.string());
  PLUMB_CHECK(!fs::is_directory(status), "{} is a folder, not a file", name);
  PLUMB_CHECK(fs::is_regular_file(status), "{} is not a regular file", name);
  InputFile file{FilePointer(std::fopen(path.c_str(), "rbe")), 0};
  PLUMB_CHECK(file.stream, "{} cannot be read: {}", name, reason(errno));
  const auto bytes = fs::file_size(path, error);
  PLUMB_CHECK(!error, "{} cannot be read: {}", name, error.message());
  file.bytes = static_cast<int64_t>(bytes);
  return file;
}

bool is_stream(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status) || fs::is_directory(status)) return false;
  return !fs::is_regular_file(status) || fs::equivalent(path, "/dev/stdout", error) ||
         fs::equivalent(path, "/dev/stderr", error);
}

void check_writable(const fs::path& path, const std::string& called) {
  const AtomicFile tried(path, called.empty() ? path.string() : called);
}

void write_file(const fs::path& path, std::span<const std::span<const std::byte>> pieces) {
  AtomicFile aside(path, path.string());
  for (const auto piece : pieces) aside.write(piece);
  aside.finish();
}

}  // namespace plumb::detail
