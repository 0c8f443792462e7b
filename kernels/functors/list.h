// Lists of types.
#pragma once

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
  /// f.template operator()<T>() for the type of this number.
  template <class F>
  static void visit(size_t number, const F& f) {
    size_t i = 0;
    ((i++ == number ? f.template operator()<T>() : void()), ...);
  }
};

template <class T, class List>
inline constexpr size_t index_of = 0;
template <class T, class... Rest>
inline constexpr size_t index_of<T, TypeList<T, Rest...>> = 0;
template <class T, class First, class... Rest>
requires(!std::is_same_v<T, First>) inline constexpr size_t index_of<T, TypeList<First, Rest...>> =
    1 + index_of<T, TypeList<Rest...>>;

}  // namespace plumb::detail
