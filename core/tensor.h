// The tensor handle that users hold.
#pragma once

#include <concepts>
#include <ranges>
#include <span>
#include <vector>

#include "ref.h"
#include "tape_node.h"
#include "value.h"

namespace plumb {

/// A dense array of up to six dimensions: its data (a value) and where its gradient goes (a tape node). Copies share
/// both. The gradient edge belongs to the handle: detached() is the same value without it.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(detail::Ref<detail::Value> v, detail::Ref<detail::Node> n = {})
      : value(std::move(v)), node(std::move(n)) {}

  /// Uninitialised memory of a device. Never symbolic: it has memory even while a step is captured.
  static Tensor empty(const TensorSpec& spec, MemoryClass c = MemoryClass::kActivation, Device d = {}) {
    return Tensor(detail::Value::make(spec, c, d, false));
  }
  /// A host tensor with a copy of host data (a vector, an array, a span), in the element order of the spec's layout.
  /// Throws if the number of elements or the dtype differs from the spec's, and while a step is captured.
  template <std::ranges::contiguous_range Data>
  static Tensor from(const Data& data, const TensorSpec& spec, MemoryClass c = MemoryClass::kActivation) {
    using T = std::ranges::range_value_t<Data>;
    return copy_of(std::ranges::data(data), std::ranges::size(data), dtype_of<T>, spec, c);
  }
  template <class T>
  static Tensor from(std::span<const T> data, const TensorSpec& spec, MemoryClass c = MemoryClass::kActivation) {
    return copy_of(data.data(), data.size(), dtype_of<T>, spec, c);
  }
  /// The same for row-major data, with the dtype of the data.
  template <std::ranges::contiguous_range Data, std::same_as<Shape> S>
  static Tensor from(const Data& data, const S& shape) {
    return from(data, TensorSpec(shape, dtype_of<std::ranges::range_value_t<Data>>));
  }
  template <std::ranges::contiguous_range Data>
  static Tensor from(const Data& data, std::initializer_list<int64_t> extents) {
    return from(data, Shape(extents));
  }
  template <class T>
  static Tensor from(std::initializer_list<T> data, const Shape& shape) {
    return from(std::span<const T>(data.begin(), data.size()), shape);
  }
  /// A tensor on memory that the caller owns. `deleter` runs when the last handle is gone. Packs and tensors kept for
  /// backward notice writes only by the version: call mutable_data after writing to the memory directly. Device memory
  /// must be aligned to 16 bytes.
  static Tensor wrap(void* data, const TensorSpec& spec, std::function<void(void*)> deleter = {}, Device d = {}) {
    return Tensor(detail::Value::wrap(data, spec, MemoryClass::kInput, std::move(deleter), d));
  }

  explicit operator bool() const { return static_cast<bool>(value); }
  /// Throws on an empty tensor, as everything below does.
  const TensorSpec& spec() const& {
    if (!value) [[unlikely]]
      refuse_empty();
    return value->spec;
  }
  TensorSpec spec() const&& { return spec(); }
  const Shape& shape() const& { return spec().shape; }
  Shape shape() const&& { return spec().shape; }
  int rank() const { return spec().rank(); }
  DType dtype() const { return spec().dtype; }
  Layout layout() const { return spec().layout; }
  int64_t numel() const { return spec().numel(); }
  size_t bytes() const { return spec().bytes(); }
  Device device() const {
    if (!value) [[unlikely]]
      refuse_empty();
    return value->device;
  }

  /// The elements in memory order, valid as long as some handle lives; so not on a temporary. Throws if T is not the
  /// dtype, if the tensor is on a device (bring it to the host with to(device)), or if it is only captured.
  template <class T>
  std::span<const T> data() const& {
    return {static_cast<const T*>(readable(dtype_of<T>)), static_cast<size_t>(numel())};
  }
  template <class T>
  std::span<const T> data() const&& = delete;
  /// The same for writing. Tensors kept for backward before this call refuse to be used afterwards, and packs are
  /// remade. Only this call is noticed, not the writes: call it again before writing through an old span. Throws while
  /// a step is captured.
  template <class T>
  std::span<T> mutable_data() & {
    void* p = writable(dtype_of<T>);
    return {static_cast<T*>(p), static_cast<size_t>(numel())};
  }
  /// The only element of a one-element tensor, as a double whatever the dtype. Waits for the device, as at does.
  double item() const;
  /// The element at these logical indices ({n, c, h, w} whatever the layout), as a double; negative ones count from the
  /// end.
  double at(std::span<const int64_t> index) const;
  double at(std::initializer_list<int64_t> index) const { return at(std::span(index.begin(), index.size())); }

  /// A copy with its own memory: an op, with a gradient (ops/copy.h).
  Tensor clone() const;
  /// Writes the elements of x into this tensor's memory. It is an op that is observed and captured (ops/copy.h), unless
  /// x is on another device. Puts nothing on the tape. Throws if x has another shape, dtype or layout, and inside a
  /// capture if it is on another device.
  void copy_from(const Tensor& x);

  /// Asks for gradients with respect to this tensor; an existing gradient edge stays. Marks this handle and copies made
  /// of it afterwards, but no earlier copies. Returns itself.
  Tensor& require_grad();
  bool requires_grad() const { return static_cast<bool>(node); }
  /// The same value without a gradient edge.
  Tensor detached() const { return Tensor(value); }

  detail::Ref<detail::Value> value;
  detail::Ref<detail::Node> node;

 private:
  static Tensor copy_of(const void* data, size_t count, DType dtype, const TensorSpec& spec, MemoryClass c);
  void refuse_symbolic() const;
  double element(int64_t offset) const;
  void* readable(DType t) const;
  void* writable(DType t) const;
  [[noreturn]] static void refuse_empty();
};

/// A list of tensors whose storage needs no malloc once warm. Indexing a temporary list returns a new handle, so that a
/// reference may be bound to grad(y, {x})[0].
class TensorList : public detail::PoolVector<Tensor> {
 public:
  using detail::PoolVector<Tensor>::vector;
  TensorList(const detail::PoolVector<Tensor>& tensors) : vector(tensors) {}
  Tensor& operator[](size_t i) & { return vector::operator[](i); }
  const Tensor& operator[](size_t i) const& { return vector::operator[](i); }
  Tensor operator[](size_t i) && { return std::move(vector::operator[](i)); }
};

}  // namespace plumb

namespace plumb::detail {

/// While a step is captured, throws a sentence that begins with `what` and ends with the advice `instead`.
void refuse_in_capture(const char* what, const char* instead);

template <class T>
T* PoolAllocator<T>::allocate(size_t n) {
  return static_cast<T*>(ctx.pool.get(n * sizeof(T)));
}
template <class T>
void PoolAllocator<T>::deallocate(T* p, size_t n) noexcept {
  ctx.pool.put(p, n * sizeof(T));
}

}  // namespace plumb::detail
