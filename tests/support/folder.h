// A folder of a test's own, and what is in a file.
#pragma once

#include <filesystem>
#include <string>

namespace plumb::test {

/// An empty folder under the system's own for temporary files, removed with all that is in it at the end.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// The bytes of a file. Throws Error where there is none.
std::string content(const std::filesystem::path& file);
/// Where the sources are that the tests are of.
std::string source_folder();

}  // namespace plumb::test
