#include "tests/support/folder.h"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "core/error.h"

namespace plumb::test {

namespace fs = std::filesystem;

Folder::Folder() {
  std::string name = (fs::temp_directory_path() / "plumb_test_XXXXXX").string();
  PLUMB_CHECK(mkdtemp(name.data()), "no folder {} can be made", name);
  path_ = name;
}

Folder::~Folder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

FullDisk::FullDisk(size_t bytes) : old_handler_(std::signal(SIGXFSZ, SIG_IGN)) {
  getrlimit(RLIMIT_FSIZE, &old_);
  const rlimit small{bytes, old_.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
}
FullDisk::~FullDisk() {
  setrlimit(RLIMIT_FSIZE, &old_);
  std::signal(SIGXFSZ, old_handler_);
}

std::string content(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  PLUMB_CHECK(in, "there is no {}", file.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string source_folder() { return PLUMB_SOURCE_DIR; }

}  // namespace plumb::test
