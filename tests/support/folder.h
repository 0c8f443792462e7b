// A temporary folder for a test, and the content of files.
#pragma once

#include <sys/resource.h>

#include <filesystem>
#include <string>

namespace plumb::test {

/// An empty folder in the system's temporary folder; removed with its content at the end.
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

/// While it lives, no file can grow beyond so many bytes: a full disk.
class FullDisk {
 public:
  explicit FullDisk(size_t bytes);
  ~FullDisk();
  FullDisk(const FullDisk&) = delete;

 private:
  rlimit old_{};
  void (*old_handler_)(int);
};

/// The bytes of a file. Throws Error if there is none.
std::string content(const std::filesystem::path& file);
/// The source folder of the tested project.
std::string source_folder();

}  // namespace plumb::test
