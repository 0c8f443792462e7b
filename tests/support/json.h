// JSON in tests. Its parser and the members of its values take seconds to compile: one source has them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

extern template class nlohmann::basic_json<>;

namespace plumb::test {

using Json = nlohmann::json;

/// What a text says. Throws nlohmann::json::exception if it is not JSON.
Json parse_json(const std::string& text);
/// What a file of tests/golden says.
Json golden_json(const std::string& file);
/// Where the sources are that the tests are of.
std::string source_folder();

}  // namespace plumb::test
