#include "core/tensor.h"

#include "core/runtime.h"

namespace plumb {

Tensor Tensor::copy_of(const void* data, size_t count, DType dtype, const TensorSpec& spec, MemoryClass c) {
  PLUMB_CHECK(spec.dtype == dtype, "a tensor {} was given data of dtype {}", spec, dtype);
  PLUMB_CHECK(static_cast<int64_t>(count) == spec.numel(), "a tensor {} was given {} elements", spec, count);
  detail::refuse_in_capture("from", "make the tensor before, and refill it with copy_from");
  Tensor t = empty(spec, c);
  if (count > 0) std::memcpy(t.value->data, data, t.bytes());
  return t;
}

Tensor& Tensor::require_grad() {
  PLUMB_CHECK(value, "require_grad: the tensor is empty");
  PLUMB_CHECK(is_floating(dtype()), "require_grad: a tensor of dtype {} has no gradient", dtype());
  if (!node) node = detail::Node::make_leaf(spec());
  return *this;
}

double Tensor::item() const {
  PLUMB_CHECK(value, "item: the tensor is empty");
  PLUMB_CHECK(numel() == 1, "item: the tensor has shape {}, which is not one element", shape());
  return element(0);
}

double Tensor::at(std::span<const int64_t> index) const {
  PLUMB_CHECK(value, "at: the tensor is empty");
  PLUMB_CHECK(static_cast<int>(index.size()) == rank(), "at: {} indices were given for a tensor of shape {}",
              index.size(), shape());
  const Strides strides = strides_of(spec());
  int64_t offset = 0;
  for (int d = 0; d < rank(); ++d) {
    const int64_t asked = index[static_cast<size_t>(d)], extent = shape()[d];
    PLUMB_CHECK(asked >= -extent && asked < extent, "at: index {} of dimension {} lies outside of shape {}", asked, d,
                shape());
    offset += (asked < 0 ? asked + extent : asked) * strides[d];
  }
  return element(offset);
}

double Tensor::element(int64_t offset) const {
  refuse_symbolic();
  const auto* from = static_cast<const char*>(value->data) + static_cast<size_t>(offset) * size_of(dtype());
  alignas(8) char one[8];
  detail::copy_bytes(one, {}, from, value->device, size_of(dtype()));
  return dispatch_dtype(dtype(), [&]<class T>() {
    const T v = *reinterpret_cast<const T*>(one);
    if constexpr (std::is_arithmetic_v<T>) {
      return static_cast<double>(v);  // of i64, beyond 2^53, rounded
    } else {
      return static_cast<double>(static_cast<float>(v));
    }
  });
}

void Tensor::refuse_empty() { fail("the tensor is empty: it has neither shape nor elements; give it a value first"); }

void* Tensor::readable(DType t) const {
  PLUMB_CHECK(value, "data: the tensor is empty");
  PLUMB_CHECK(t == dtype(), "data: {} was asked of a tensor of dtype {}; convert it with to(dtype)", t, dtype());
  refuse_symbolic();
  PLUMB_CHECK(device().is_cpu(), "data: the tensor {} is on {}, out of the host's reach; bring it with to(x, Device())",
              spec(), device());
  return value->data;
}

void Tensor::refuse_symbolic() const {
  PLUMB_CHECK(!value->is_symbolic(),
              "data: the elements of a captured tensor are not known while capturing; return the tensor from the "
              "captured function and read it after run(); a handle from outside that was given another tensor inside "
              "keeps that: write into it with copy_from");
}

void* Tensor::writable(DType t) const {
  void* p = readable(t);
  detail::refuse_in_capture("mutable_data", "write before the capture, or by an op such as copy_from");
  value->bump_version();
  return p;
}

void detail::refuse_in_capture(const char* what, const char* instead) {
  PLUMB_CHECK(!ctx.recorder, "{}: a step is being captured, and this would be done once, for all of its runs; {}", what,
              instead);
}

}  // namespace plumb
