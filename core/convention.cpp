#include "core/convention.h"

#include "core/error.h"

namespace plumb {

const char* to_string(Convention c) {
  switch (c) {
    case Convention::kPyTorch: return "pytorch";
    case Convention::kKeras: return "keras";
    case Convention::kTensorFlow1: return "tensorflow1";
  }
  fail("convention {} is unknown", static_cast<int>(c));
}

Convention convention_from_string(std::string_view name) {
  for (const Convention c : kConventions) {
    if (name == to_string(c)) return c;
  }
  fail("convention \"{}\" is unknown; use pytorch, keras or tensorflow1", name);
}

}  // namespace plumb
