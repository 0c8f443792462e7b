#include "tests/support/folder.h"

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

std::string content(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  PLUMB_CHECK(in, "there is no {}", file.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string source_folder() { return PLUMB_SOURCE_DIR; }

}  // namespace plumb::test
