// What Plumbline does in each of its conventions when nothing is said.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace plumb::compare {

/// {convention: {item: value}}, measured on layers and optimizers that are made with nothing but their sizes, as
/// workers/defaults measures the frameworks'. An item that a convention does not have is left out.
nlohmann::json defaults();

}  // namespace plumb::compare
