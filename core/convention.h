// Which framework's formulas and defaults to follow.
#pragma once

#include <cstdint>
#include <string_view>

namespace plumb {

/// A framework whose defaults and formulas are reproduced: PyTorch 2, Keras 3, TensorFlow 1 (tf.compat.v1).
enum class Convention : int32_t { kPyTorch, kKeras, kTensorFlow1 };
inline constexpr Convention kConventions[] = {Convention::kPyTorch, Convention::kKeras, Convention::kTensorFlow1};

/// "pytorch", "keras", "tensorflow1".
const char* to_string(Convention c);
/// The inverse of to_string; throws on an unknown name.
Convention convention_from_string(std::string_view name);

}  // namespace plumb
