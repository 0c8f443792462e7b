// The handle that users hold.
#pragma once

#include <span>
#include <vector>

#include "ref.h"
#include "tape_node.h"
#include "value.h"

namespace plumb {

/// A dense array of up to six dimensions: what it is (a value) and where its gradient goes (a tape node). Copies share
/// both. The gradient edge lives in the handle: detached() is the same value without it.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(detail::Ref<detail::Value> v, detail::Ref<detail::Node> n = {}) : value(std::move(v)), node(std::move(n)) {}

  /// Uninitialised memory. Never symbolic: made outside a captured step even while one is captured.
  static Tensor empty(const TensorSpec& spec, MemoryClass c = MemoryClass::kActivation) {
    return Tensor(detail::Value::make(spec, c, false));
  }
  /// A copy of host data, in the order of the spec's layout. Throws if the number of elements differs.
  template <class T>
  static Tensor from(std::span<const T> data, const TensorSpec& spec, MemoryClass c = MemoryClass::kActivation);
  template <class T>
  static Tensor from(std::initializer_list<T> data, const Shape& shape) {
    return from(std::span<const T>(data.begin(), data.size()), TensorSpec(shape, dtype_of<T>));
  }
  /// A tensor on memory of the caller's. `deleter` runs when the last handle is gone. Packs and tensors kept for
  /// backward notice a write by the version alone: after writing to the memory directly, call mutable_data.
  static Tensor wrap(void* data, const TensorSpec& spec, std::function<void(void*)> deleter = {}) {
    return Tensor(detail::Value::wrap(data, spec, MemoryClass::kInput, std::move(deleter)));
  }

  explicit operator bool() const { return static_cast<bool>(value); }
  /// This and what follows throw on an empty tensor.
  const TensorSpec& spec() const {
    if (!value) [[unlikely]]
      refuse_empty();
    return value->spec;
  }
  const Shape& shape() const { return spec().shape; }
  int rank() const { return spec().rank(); }
  DType dtype() const { return spec().dtype; }
  Layout layout() const { return spec().layout; }
  int64_t numel() const { return spec().numel(); }
  size_t bytes() const { return spec().bytes(); }

  /// The elements, in the order of the layout. Throws if T is not the dtype, or while the tensor is only captured.
  template <class T>
  std::span<const T> data() const {
    return {static_cast<const T*>(readable(dtype_of<T>)), static_cast<size_t>(numel())};
  }
  /// The same for writing: what was kept for backward before refuses to be used after, and packs are made anew. Both
  /// notice this call and not the writes: after writing through the span later, call it again.
  template <class T>
  std::span<T> mutable_data() {
    void* p = readable(dtype_of<T>);
    value->bump_version();
    return {static_cast<T*>(p), static_cast<size_t>(numel())};
  }
  /// The only element of a tensor with one element, as a double whatever the dtype.
  double item() const;

  /// Gradients are wanted with respect to this tensor; one that has a gradient edge keeps it. Returns itself.
  Tensor& require_grad();
  bool requires_grad() const { return static_cast<bool>(node); }
  /// The same value without a gradient edge.
  Tensor detached() const { return Tensor(value); }

  detail::Ref<detail::Value> value;
  detail::Ref<detail::Node> node;

 private:
  void* readable(DType t) const;
  [[noreturn]] static void refuse_empty();
};

/// A list of tensors whose storage costs no malloc once warm.
using TensorList = detail::PoolVector<Tensor>;

template <class T>
T* detail::PoolAllocator<T>::allocate(size_t n) {
  return static_cast<T*>(detail::ctx.pool.get(n * sizeof(T)));
}
template <class T>
void detail::PoolAllocator<T>::deallocate(T* p, size_t n) noexcept {
  detail::ctx.pool.put(p, n * sizeof(T));
}

template <class T>
Tensor Tensor::from(std::span<const T> data, const TensorSpec& spec, MemoryClass c) {
  PLUMB_CHECK(spec.dtype == dtype_of<T>, "a tensor {} was given data of dtype {}", spec, dtype_of<T>);
  PLUMB_CHECK(static_cast<int64_t>(data.size()) == spec.numel(), "a tensor {} was given {} elements", spec,
              data.size());
  Tensor t = empty(spec, c);
  if (!data.empty()) std::memcpy(t.value->data, data.data(), data.size_bytes());
  return t;
}

}  // namespace plumb
