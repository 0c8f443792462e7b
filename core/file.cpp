#include "core/file.h"

#include <fcntl.h>
#include <sys/file.h>
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

// A link of procfs stands for an open file of a process; its text need not be a path.
bool is_open_file(const fs::path& link) {
  std::error_code error;
  return fs::weakly_canonical(fs::absolute(link, error).parent_path(), error).string().starts_with("/proc/");
}

fs::path folder_of(const fs::path& file) { return file.has_parent_path() ? file.parent_path() : fs::path("."); }

void check_folder(const std::string& file, const fs::path& folder) {
  std::error_code error;
  const fs::file_status status = fs::status(folder, error);
  PLUMB_CHECK(fs::exists(status), "{} cannot be written: the folder {} does not exist", file, folder.string());
  PLUMB_CHECK(fs::is_directory(status), "{} cannot be written: {} is a file, not a folder", file, folder.string());
}

/// A new file beside the one that it is to replace; removed unless it takes its place.
class AtomicFile {
 public:
  AtomicFile(const fs::path& path, const std::string& called) : file_(called) {
    PLUMB_CHECK(!is_stream(path), "{} cannot be written: it is not a regular file", file_);
    target_ = behind_links(path);
    aside_ = target_.string() + ".partial";
    std::error_code error;
    const fs::file_status old = fs::status(target_, error), left = fs::symlink_status(aside_, error);
    PLUMB_CHECK(!fs::is_directory(old), "{} cannot be written: it is a folder", file_);
    check_folder(file_, folder_of(target_));
    const bool is_free = !fs::exists(left) || fs::is_regular_file(left);
    PLUMB_CHECK(is_free, "{} cannot be written: {} is in the way", file_, aside_.string());
    PLUMB_CHECK(!fs::exists(old) || ::access(target_.c_str(), W_OK) == 0, "{} cannot be written: {}", file_,
                reason(errno));
    const int descriptor = open_locked();
    if (fs::exists(old)) ::fchmod(descriptor, static_cast<mode_t>(old.permissions()));
    stream_.reset(::fdopen(descriptor, "wb"));
    if (!stream_) {
      const std::string why = reason(errno);
      std::remove(aside_.c_str());
      ::close(descriptor);
      fail("{} cannot be written: {}", file_, why);
    }
    std::setvbuf(stream_.get(), nullptr, _IONBF, 0);  // pieces are large
  }
  AtomicFile(const AtomicFile&) = delete;
  ~AtomicFile() {  // while it is still locked
    if (!aside_.empty()) std::remove(aside_.c_str());
  }

  void write(std::span<const std::byte> piece) const {
    check(std::fwrite(piece.data(), 1, piece.size(), stream_.get()) == piece.size());
  }
  void finish() {
    check(::fsync(::fileno(stream_.get())) == 0);
    check(std::rename(aside_.c_str(), target_.c_str()) == 0);
    aside_.clear();
    check(std::fclose(stream_.release()) == 0);
  }

 private:
  // An empty file under the name `aside_` that no other run writes to; what a run that was stopped has left will do.
  int open_locked() const {
    while (true) {
      const int descriptor = ::open(aside_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
      PLUMB_CHECK(descriptor >= 0, "{} cannot be written: {}", file_, reason(errno));
      const bool is_busy = ::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
      using Status = struct stat;
      Status own{}, named{};
      const bool is_named = ::fstat(descriptor, &own) == 0 && ::stat(aside_.c_str(), &named) == 0 &&
                            own.st_dev == named.st_dev && own.st_ino == named.st_ino;
      if (!is_busy && is_named && ::ftruncate(descriptor, 0) == 0) return descriptor;
      ::close(descriptor);
      PLUMB_CHECK(!is_busy, "{} cannot be written: another run is writing it", file_);
      PLUMB_CHECK(!is_named, "{} cannot be written: {}", file_, reason(errno));
    }  // another run has just renamed or removed it
  }
  void check(bool good) const { PLUMB_CHECK(good, "{} cannot be written: {}", file_, reason(errno)); }

  std::string file_;
  fs::path target_, aside_;
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

fs::path behind_links(const fs::path& path) {
  constexpr int kMostLinks = 40;  // as the kernel's
  fs::path place = path;
  std::error_code error;
  for (int links = 0; fs::is_symlink(fs::symlink_status(place, error)) && !is_open_file(place); ++links) {
    PLUMB_CHECK(links < kMostLinks, "{} cannot be written: its links lead in a circle", path.string());
    place = place.parent_path() / fs::read_symlink(place, error);
  }
  return place;
}

bool is_stream(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status) || fs::is_directory(status)) return false;
  return !fs::is_regular_file(status) || fs::is_symlink(fs::symlink_status(behind_links(path), error));
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
