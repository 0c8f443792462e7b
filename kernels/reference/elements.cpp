#include "kernels/reference/elements.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/bytes.h"

namespace plumb::reference {

using detail::load_bytes;
using detail::store_bytes;
namespace {

// v as a number of `digits` binary digits whose exponent is not below `least`, to nearest even.
double with_digits(double v, int digits, int least) {
  if (v == 0 || !std::isfinite(v)) return v;
  const int unit = std::max(std::ilogb(v), least) - (digits - 1);
  return std::ldexp(std::nearbyint(std::ldexp(v, -unit)), unit);
}

// v as a number of 8 binary digits, to nearest even: through a double, some i64 would be rounded twice.
float rounded_to_bf16(int64_t v) {
  uint64_t magnitude = v < 0 ? -static_cast<uint64_t>(v) : static_cast<uint64_t>(v);
  if (const int extra = static_cast<int>(std::bit_width(magnitude)) - 8; extra > 0) {
    const uint64_t unit = uint64_t{1} << extra, rest = magnitude % unit;
    magnitude -= rest;
    if (rest > unit / 2 || (rest == unit / 2 && (magnitude & unit))) magnitude += unit;
  }
  return v < 0 ? -static_cast<float>(magnitude) : static_cast<float>(magnitude);
}

template <class To>
To truncated(double v) {
  constexpr To kLeast = std::numeric_limits<To>::min(), kMost = std::numeric_limits<To>::max();
  if (v != v) return 0;
  if (v <= static_cast<double>(kLeast)) return kLeast;
  if (v >= static_cast<double>(kMost)) return kMost;  // for i64 this is 2^63, the first that is too large
  return static_cast<To>(v);
}

int64_t integer_of(DType t, const char* element) {
  switch (t) {
    case DType::kI32: return load_bytes<int32_t>(element);
    case DType::kI64: return load_bytes<int64_t>(element);
    case DType::kU8: return load_bytes<uint8_t>(element);
    default: fail("dtype {} is no integer", t);
  }
}

}  // namespace

Index index_at(const Shape& shape, int64_t i) {
  Index index;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    index[d] = i % shape[d];
    i /= shape[d];
  }
  return index;
}

bool computes_on(DType t) { return t == DType::kF32 || t == DType::kF64 || t == DType::kBf16; }

template <>
Bfloat16 rounded(double v) {
  return Bfloat16(static_cast<float>(with_digits(v, 8, -126)));
}

Elements::Elements(const TensorSpec& spec, int rank)
    : spec_(spec), strides_(strides_of(spec)), lead_(rank - spec.rank()) {
  for (int d = 0; d < spec.rank(); ++d) {
    if (spec.shape[d] == 1) strides_.of[d] = 0;
  }
}

inline int64_t Elements::offset(const Index& i) const {
  int64_t elements = 0;
  for (int d = 0; d < spec_.rank(); ++d) elements += i[d + lead_] * strides_[d];
  return elements * static_cast<int64_t>(size_of(spec_.dtype));
}

double Elements::load(const void* data, const Index& i) const {
  const char* element = static_cast<const char*>(data) + offset(i);
  switch (spec_.dtype) {
    case DType::kF32: return static_cast<double>(load_bytes<float>(element));
    case DType::kF64: return load_bytes<double>(element);
    case DType::kF16: return static_cast<double>(static_cast<float>(load_bytes<Float16>(element)));
    case DType::kBf16: return static_cast<double>(static_cast<float>(load_bytes<Bfloat16>(element)));
    default: return static_cast<double>(integer_of(spec_.dtype, element));
  }
}

void Elements::store(void* data, const Index& i, double v) const {
  char* element = static_cast<char*>(data) + offset(i);
  switch (spec_.dtype) {
    case DType::kF32: return store_bytes(element, static_cast<float>(v));
    case DType::kF64: return store_bytes(element, v);
    case DType::kF16: return store_bytes(element, Float16(static_cast<float>(with_digits(v, 11, -14))));
    case DType::kBf16: return store_bytes(element, rounded<Bfloat16>(v));
    case DType::kI32: return store_bytes(element, truncated<int32_t>(v));
    case DType::kI64: return store_bytes(element, truncated<int64_t>(v));
    case DType::kU8: return store_bytes(element, truncated<uint8_t>(v));
  }
}

int64_t Elements::load_integer(const void* data, const Index& i) const {
  return integer_of(spec_.dtype, static_cast<const char*>(data) + offset(i));
}

void Elements::store_integer(void* data, const Index& i, int64_t v) const {
  char* element = static_cast<char*>(data) + offset(i);
  switch (spec_.dtype) {
    case DType::kF32: return store_bytes(element, static_cast<float>(v));
    case DType::kF64: return store_bytes(element, static_cast<double>(v));
    case DType::kF16: return store(data, i, static_cast<double>(v));  // what this rounds is infinite as f16
    case DType::kBf16: return store_bytes(element, Bfloat16(rounded_to_bf16(v)));
    case DType::kI32: return store_bytes(element, static_cast<int32_t>(v));
    case DType::kI64: return store_bytes(element, v);
    case DType::kU8: return store_bytes(element, static_cast<uint8_t>(v));
  }
}

void Elements::copy(void* data, const Index& i, const Elements& from, const void* from_data,
                    const Index& from_index) const {
  std::memcpy(static_cast<char*>(data) + offset(i), static_cast<const char*>(from_data) + from.offset(from_index),
              size_of(spec_.dtype));
}

void offer(const char* kind, Candidates& candidates, std::function<void(const Launch&)> run) {
  candidates.add(Provider::kReference, "reference", [=] { return make_kernel(std::string("reference:") + kind, run); });
}

}  // namespace plumb::reference
