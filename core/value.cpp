#include "core/value.h"

#include <memory>
#include <new>

namespace plumb::detail {

struct Value::Foreign {
  std::function<void(void*)> deleter;
};

Ref<Value> Value::make(const TensorSpec& spec, MemoryClass c, bool symbolic) {
  auto* v = new (ctx.pool.get(sizeof(Value))) Value;
  Ref<Value> made = Ref<Value>::adopt(v);
  v->spec = spec;
  v->memory_class = c;
  if (!symbolic) {
    const size_t bytes = spec.bytes();
    v->data = cpu_memory().get(bytes, c);
    v->bytes_ = bytes;
  }
  return made;
}

Ref<Value> Value::wrap(void* data, const TensorSpec& spec, MemoryClass c, std::function<void(void*)> deleter) {
  const bool empty = spec.numel() == 0;
  PLUMB_CHECK(data || empty, "a tensor {} was asked to wrap a null pointer", spec);
  PLUMB_CHECK(reinterpret_cast<uintptr_t>(data) % size_of(spec.dtype) == 0,
              "a tensor {} was asked to wrap memory that is not aligned to its elements", spec);
  auto foreign = std::make_unique<Foreign>(std::move(deleter));
  Ref<Value> made = make(spec, c, true);
  made->data = data;
  made->is_empty_ = empty;
  made->foreign_ = foreign.release();
  return made;
}

Ref<Value> Value::alias(const Ref<Value>& of, const TensorSpec& spec) {
  Ref<Value> made = make(spec, of->memory_class, true);
  made->data = of->data;
  made->is_empty_ = of->is_empty_;
  made->base_ = of->base_ ? of->base_ : of;
  return made;
}

void Value::destroy(Value* v) {
  if (v->bytes_ || (v->data && !v->base_ && !v->foreign_)) {
    cpu_memory().put(v->data, v->bytes_, v->memory_class);
  } else if (v->foreign_) {
    if (v->foreign_->deleter) v->foreign_->deleter(v->data);
    delete v->foreign_;
  }
  delete v->packs();
  v->~Value();
  ctx.pool.put(v, sizeof(Value));
}

}  // namespace plumb::detail
