#include "core/tensor.h"

namespace plumb {

Tensor& Tensor::require_grad() {
  PLUMB_CHECK(value, "require_grad: the tensor is empty");
  PLUMB_CHECK(is_floating(dtype()), "require_grad: a tensor of dtype {} has no gradient", dtype());
  if (!node) node = detail::Node::make_leaf(spec());
  return *this;
}

double Tensor::item() const {
  PLUMB_CHECK(value, "item: the tensor is empty");
  PLUMB_CHECK(numel() == 1, "item: the tensor has shape {}, which is not one element", shape());
  return dispatch_dtype(dtype(), [&]<class T>() {
    const T v = data<T>()[0];
    if constexpr (std::is_arithmetic_v<T>) {
      return static_cast<double>(v);
    } else {
      return static_cast<double>(static_cast<float>(v));
    }
  });
}

void Tensor::refuse_empty() { fail("the tensor is empty: it has neither shape nor elements; give it a value first"); }

void* Tensor::readable(DType t) const {
  PLUMB_CHECK(value, "data: the tensor is empty");
  PLUMB_CHECK(t == dtype(), "data: {} was asked of a tensor of dtype {}; convert it with to(dtype)", t, dtype());
  PLUMB_CHECK(!value->is_symbolic(),
              "data: the elements of a captured tensor are not known while capturing; return the tensor from the "
              "captured function and read it after run()");
  return value->data;
}

}  // namespace plumb
