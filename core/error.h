// Errors: one exception type, one check macro, messages with {} placeholders.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace plumb {

/// The only exception that the library itself throws. what() is one sentence that names the op, the shapes and the fix.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

namespace detail {

template <class... Args>
struct MessageFormat {  // counts the placeholders at compile time
  template <size_t N>
  consteval MessageFormat(const char (&s)[N]) : text(s, N - 1) {
    size_t count = 0;
    for (size_t i = 0; i + 1 < N; ++i) count += s[i] == '{';
    if (count != sizeof...(Args)) throw "the number of {} and of arguments differ";
  }
  std::string_view text;
};

/// "0.1", "1e+39": seven digits, the precision of an f32.
std::string text_of(double value);

template <class T>
std::string message_argument(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_floating_point_v<T>) {
    return text_of(static_cast<double>(value));
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    return std::string(std::string_view(value));
  } else {
    using std::to_string;
    return to_string(value);
  }
}

std::string join_message(std::string_view format, std::span<const std::string> arguments);
[[noreturn]] void throw_error(std::string_view format, std::span<const std::string> arguments);

}  // namespace detail

/// The text with each {} replaced by the next argument (anything with to_string, or a string).
template <class... Args>
[[nodiscard, gnu::cold, gnu::noinline]] std::string message(std::type_identity_t<detail::MessageFormat<Args...>> format,
                                                            const Args&... args) {
  const std::string texts[] = {detail::message_argument(args)..., std::string()};
  return detail::join_message(format.text, std::span(texts, sizeof...(Args)));
}

/// Throws Error with the formatted message.
template <class... Args>
[[noreturn, gnu::cold, gnu::noinline]] void fail(std::type_identity_t<detail::MessageFormat<Args...>> format,
                                                 const Args&... args) {
  const std::string texts[] = {detail::message_argument(args)..., std::string()};
  detail::throw_error(format.text, std::span(texts, sizeof...(Args)));
}

}  // namespace plumb

/// PLUMB_CHECK(w == x, "conv2d: w has {} input channels, x has {}", w, x) throws plumb::Error when the condition is
/// false.
#define PLUMB_CHECK(condition, ...) \
  do {                              \
    if (!(condition)) [[unlikely]]  \
      ::plumb::fail(__VA_ARGS__);   \
  } while (false)
