#include "core/error.h"

#include <cstdio>

namespace plumb::detail {

std::string text_of(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.7g", value);
  return text;
}

std::string join_message(std::string_view format, std::span<const std::string> arguments) {
  std::string text;
  size_t next = 0;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] == '{' && next < arguments.size()) {
      text += arguments[next++];
      ++i;  // the closing brace
    } else {
      text += format[i];
    }
  }
  return text;
}

void throw_error(std::string_view format, std::span<const std::string> arguments) {
  throw Error(join_message(format, arguments));
}

}  // namespace plumb::detail
