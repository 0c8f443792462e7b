// Files of known format, read with every size checked first.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "../core/file.h"

namespace plumb::datasets {

/// A regular file open for reading. Messages start with the name of the data set, and name the file.
class File {
 public:
  /// Opens it; throws if it is missing, is no regular file or may not be read.
  File(std::string_view set, const std::filesystem::path& path);
  /// Fills `out` from the current place; throws if the file ends sooner.
  void read(std::span<uint8_t> out);

  int64_t size() const { return size_; }  ///< in bytes, when it was opened
  const std::string& set() const { return set_; }
  const std::string& path() const { return path_; }

 private:
  std::string set_, path_;
  detail::FilePointer file_;
  int64_t size_ = 0;
};

/// `folder` or `folder/usual`, whichever has a file of the name `file`; throws if neither has.
std::filesystem::path find_folder(std::string_view set, const std::filesystem::path& folder, std::string_view usual,
                                  std::string_view file);

}  // namespace plumb::datasets
