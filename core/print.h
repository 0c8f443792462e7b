// Tensors as text for people.
#pragma once

#include <iosfwd>
#include <string>

#include "tensor.h"

namespace plumb {

/// "f32 (2, 3) nchw", followed on new lines by the elements as numpy prints them, in the order of the logical
/// dimensions; a long dimension shows its first three and last three. If the tensor is on a device, waits for it and
/// names it after the spec.
std::string to_string(const Tensor& x);
std::ostream& operator<<(std::ostream& out, const Tensor& x);
std::ostream& operator<<(std::ostream& out, const TensorSpec& s);
std::ostream& operator<<(std::ostream& out, const Shape& s);
std::ostream& operator<<(std::ostream& out, DType t);
std::ostream& operator<<(std::ostream& out, Layout l);

// fmt 10 and newer find these functions whatever the order of includes.
inline std::string format_as(const Tensor& x) { return to_string(x); }
inline std::string format_as(const TensorSpec& s) { return to_string(s); }
inline std::string format_as(const Shape& s) { return to_string(s); }

namespace detail {
template <class T>
inline constexpr bool is_printed = std::same_as<T, Tensor> || std::same_as<T, TensorSpec> || std::same_as<T, Shape>;
}  // namespace detail

}  // namespace plumb

// fmt 9 finds this if its header is included first; otherwise wrap the tensor in fmt::streamed, which uses <<.
#if defined(FMT_VERSION) && FMT_VERSION < 100000
template <class T>
requires plumb::detail::is_printed<T>
struct fmt::formatter<T> : fmt::formatter<fmt::string_view> {
  template <class Context>
  auto format(const T& v, Context& context) const {
    return fmt::formatter<fmt::string_view>::format(plumb::format_as(v), context);
  }
};
#endif
