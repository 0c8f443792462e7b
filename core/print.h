// Tensors as text, for people.
#pragma once

#include <iosfwd>
#include <string>

#include "tensor.h"

namespace plumb {

/// "f32 (2, 3) nchw", and on lines of their own the elements as numpy shows them, in the order of the logical
/// dimensions; of long dimensions the first and the last three. Of a tensor on another device than the host, which is
/// named behind the spec, after waiting for it.
std::string to_string(const Tensor& x);
std::ostream& operator<<(std::ostream& out, const Tensor& x);
std::ostream& operator<<(std::ostream& out, const TensorSpec& s);
std::ostream& operator<<(std::ostream& out, const Shape& s);
std::ostream& operator<<(std::ostream& out, DType t);
std::ostream& operator<<(std::ostream& out, Layout l);

// fmt 10 and newer find these, whatever is included first.
inline std::string format_as(const Tensor& x) { return to_string(x); }
inline std::string format_as(const TensorSpec& s) { return to_string(s); }
inline std::string format_as(const Shape& s) { return to_string(s); }

namespace detail {
template <class T>
inline constexpr bool is_printed = std::same_as<T, Tensor> || std::same_as<T, TensorSpec> || std::same_as<T, Shape>;
}  // namespace detail

}  // namespace plumb

// fmt 9 finds this where its header is included before; otherwise fmt::streamed takes the operators.
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
