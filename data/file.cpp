#include "data/file.h"

#include <cerrno>
#include <system_error>

#include "core/error.h"

namespace plumb::data {
namespace fs = std::filesystem;

File::File(std::string_view set, const fs::path& path) : set_(set), path_(path.string()) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  PLUMB_CHECK(fs::exists(status), "{}: the file {} is missing", set_, path_);
  PLUMB_CHECK(fs::is_regular_file(status), "{}: {} is not a regular file", set_, path_);
  file_.reset(std::fopen(path_.c_str(), "rb"));
  PLUMB_CHECK(file_, "{}: cannot open {}: {}", set_, path_, std::generic_category().message(errno));
  const auto bytes = fs::file_size(path, error);
  PLUMB_CHECK(!error, "{}: cannot tell the size of {}: {}", set_, path_, error.message());
  size_ = static_cast<int64_t>(bytes);
  std::setvbuf(file_.get(), nullptr, _IOFBF, size_t{1} << 20);
}

void File::read(std::span<uint8_t> out) {
  const size_t found = std::fread(out.data(), 1, out.size(), file_.get());
  PLUMB_CHECK(found == out.size(), "{}: {} ended while it was read: {} bytes were found where {} were expected", set_,
              path_, found, out.size());
}

fs::path find_folder(std::string_view set, const fs::path& folder, std::string_view usual, std::string_view file) {
  std::error_code error;
  for (const fs::path& candidate : {folder, folder / usual}) {
    if (fs::exists(candidate / file, error)) return candidate;
  }
  PLUMB_CHECK(fs::is_directory(folder, error), "{}: {} is not a folder", set, folder.string());
  fail("{}: the file {} is neither in {} nor in {}; give the folder of the unpacked data set", set, file,
       folder.string(), (folder / usual).string());
}

}  // namespace plumb::data
