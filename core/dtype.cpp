#include "core/dtype.h"

#include <array>

namespace plumb {
namespace {
constexpr std::array<const char*, kDTypeCount> kNames = {"f32", "f64", "f16", "bf16", "i32", "i64", "u8"};
}

const char* to_string(DType t) { return kNames[static_cast<size_t>(t)]; }

DType dtype_from_string(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<DType>(i);
  }
  fail("dtype \"{}\" is unknown; use one of f32, f64, f16, bf16, i32, i64, u8", name);
}

}  // namespace plumb
