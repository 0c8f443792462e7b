#include "data/file.h"

#include <system_error>

#include "core/error.h"

namespace plumb::datasets {
namespace fs = std::filesystem;

File::File(std::string_view set, const fs::path& path) : set_(set), path_(path.string()) {
  auto [stream, bytes] = detail::open_input(path, set_ + ": ");
  file_ = std::move(stream);
  size_ = bytes;
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
    const fs::file_status status = fs::status(candidate / file, error);
    if (fs::exists(status)) return candidate;
    PLUMB_CHECK(status.type() != fs::file_type::none, "{}: {} cannot be read: {}", set, candidate.string(),
                error.message());
  }
  PLUMB_CHECK(fs::is_directory(folder, error), "{}: {} is not a folder", set, folder.string());
  fail("{}: the file {} is neither in {} nor in {}; give the folder of the unpacked data set", set, file,
       folder.string(), (folder / usual).string());
}

}  // namespace plumb::datasets
