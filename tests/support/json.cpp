#include "tests/support/json.h"

#include "tests/support/folder.h"

template class nlohmann::basic_json<>;

namespace plumb::test {

Json parse_json(const std::string& text) { return Json::parse(text); }

Json golden_json(const std::string& file) { return parse_json(content(PLUMB_SOURCE_DIR "/tests/golden/" + file)); }

}  // namespace plumb::test
