// Lists of types, and names made of two.
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>

namespace plumb::detail {

template <class... T>
struct TypeList {
  static constexpr size_t size = sizeof...(T);
  template <class F>
  static constexpr void for_each(F&& f) {
    (f.template operator()<T>(), ...);
  }
};

template <class T, class List>
inline constexpr size_t index_of = 0;
template <class T, class... Rest>
inline constexpr size_t index_of<T, TypeList<T, Rest...>> = 0;
template <class T, class First, class... Rest>
requires(!std::is_same_v<T, First>) inline constexpr size_t index_of<T, TypeList<First, Rest...>> =
    1 + index_of<T, TypeList<Rest...>>;

/// "relu" + "_backward" as a constant with a zero at its end.
template <size_t A, size_t B>
consteval std::array<char, A + B - 1> joined_name(const char (&a)[A], const char (&b)[B]) {
  std::array<char, A + B - 1> name{};
  for (size_t i = 0; i + 1 < A; ++i) name[i] = a[i];
  for (size_t i = 0; i < B; ++i) name[A - 1 + i] = b[i];
  return name;
}

}  // namespace plumb::detail
