#include "core/file.h"

#include <fcntl.h>
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

/// A new file beside the one that it is to replace; gone unless it takes its place. Where the system has files without
/// a name it is one until it is whole, so that nothing is left even of a process that is killed.
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
    target_ = fs::weakly_canonical(fs::absolute(path, error), error);  // a bare name has no folder of its own
    const bool can_be_named = ::access("/proc/self/fd", X_OK) == 0;
    const std::string where = fs::path(target_).parent_path().string();
    const int nameless = can_be_named ? ::open(where.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666) : -1;
    if (nameless >= 0) {
      stream_.reset(::fdopen(nameless, "wb"));
      check(stream_ != nullptr);
    } else {
      name([&] { return stream_.reset(std::fopen(aside_.c_str(), "wbxe")), stream_ != nullptr; });
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
    if (aside_.empty()) {
      const std::string own = message("/proc/self/fd/{}", ::fileno(stream_.get()));
      name([&] { return ::linkat(AT_FDCWD, own.c_str(), AT_FDCWD, aside_.c_str(), AT_SYMLINK_FOLLOW) == 0; });
    }
    check(std::fclose(stream_.release()) == 0);
    check(std::rename(aside_.c_str(), target_.c_str()) == 0);
    aside_.clear();
  }

 private:
  // A name of this run's own, so that each of two writes a whole file; `take` takes it unless another has.
  template <class Take>
  void name(const Take& take) {
    for (int n = 0;; ++n) {
      aside_ = fs::path(target_).parent_path() / message(".{}.{}.partial", ::getpid(), n);
      if (take()) return;
      const int error = errno;
      if (error != EEXIST) aside_.clear();
      check(error == EEXIST, reason(error));
    }
  }
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
