#include "tests/support/json.h"

template class nlohmann::basic_json<>;

namespace plumb::test {

Json parse_json(const std::string& text) { return Json::parse(text); }

}  // namespace plumb::test
