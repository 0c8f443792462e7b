// JSON for tests. Its parser and value members take seconds to compile, so only one source instantiates them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

extern template class nlohmann::basic_json<>;

namespace plumb::test {

using Json = nlohmann::json;

/// Parses a text. Throws nlohmann::json::exception if it is not JSON.
Json parse_json(const std::string& text);

}  // namespace plumb::test
