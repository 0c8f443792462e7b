// The precision in which a network is trained.
#pragma once

#include "../core/context.h"
#include "../core/dtype.h"

namespace plumb::training {

/// Parameters are f32 in all of these. kTf32 is kF32 with products by a GPU's tensor cores; kBf16 has activations in
/// bf16.
enum class Precision : uint8_t { kF32, kTf32, kBf16 };
inline constexpr Precision kPrecisions[] = {Precision::kF32, Precision::kTf32, Precision::kBf16};

/// "f32", "tf32", "bf16".
constexpr const char* to_string(Precision p) {
  constexpr const char* names[] = {"f32", "tf32", "bf16"};
  return names[static_cast<size_t>(p)];
}
/// The dtype of images and activations.
constexpr DType activations_of(Precision p) { return p == Precision::kBf16 ? DType::kBf16 : DType::kF32; }
/// How f32 products are computed, for Policy::math.
constexpr MathMode math_of(Precision p) { return p == Precision::kTf32 ? MathMode::kTf32 : MathMode::kStrict; }

}  // namespace plumb::training
