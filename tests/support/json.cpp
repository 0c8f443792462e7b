#include "tests/support/json.h"

#include "tests/support/folder.h"

template class nlohmann::basic_json<>;

namespace plumb::test {

Json parse_json(const std::string& text) { return Json::parse(text); }

Json golden_json(const std::string& file) { return parse_json(content(source_folder() + "/tests/golden/" + file)); }
std::string source_folder() { return PLUMB_SOURCE_DIR; }

}  // namespace plumb::test
