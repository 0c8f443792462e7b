// JSON in tests. Its parser and the members of its values take seconds to compile: one source has them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

extern template class nlohmann::basic_json<>;

namespace plumb::test {

using Json = nlohmann::json;

/// What a text says. Throws nlohmann::json::exception if it is not JSON.
Json parse_json(const std::string& text);

}  // namespace plumb::test
