#include "core/value.h"

#include <memory>
#include <new>

#include "core/runtime.h"

namespace plumb::detail {

namespace {
constexpr size_t kDeviceAlignment = 16;  // of the widest access
}  // namespace

struct Value::Foreign {
  std::function<void(void*)> deleter;
};

Ref<Value> Value::make(const TensorSpec& spec, MemoryClass c, Device d, bool symbolic) {
  auto* v = new (ctx.pool.get(sizeof(Value))) Value;
  Ref<Value> made = Ref<Value>::adopt(v);
  v->spec = spec;
  v->memory_class = c;
  v->device = d;
  if (!symbolic) {
    const size_t bytes = spec.bytes();
    v->data = memory_of(d).get(bytes, c);
    v->bytes_ = bytes;
  }
  return made;
}

Ref<Value> Value::wrap(void* data, const TensorSpec& spec, MemoryClass c, std::function<void(void*)> deleter,
                       Device d) {
  const bool empty = spec.numel() == 0;
  PLUMB_CHECK(data || empty, "a tensor {} was asked to wrap a null pointer", spec);
  PLUMB_CHECK(reinterpret_cast<uintptr_t>(data) % size_of(spec.dtype) == 0,
              "a tensor {} was asked to wrap memory that is not aligned to its elements", spec);
  PLUMB_CHECK(
      d.is_cpu() || reinterpret_cast<uintptr_t>(data) % kDeviceAlignment == 0,
      "a tensor {} was asked to wrap memory of {} that is not aligned to {} bytes, in which its kernels read and "
      "write; copy it to memory that is",
      spec, d, kDeviceAlignment);
  auto foreign = std::make_unique<Foreign>(Foreign{std::move(deleter)});
  Ref<Value> made = make(spec, c, d, true);
  made->data = data;
  made->is_empty_ = empty;
  made->foreign_ = foreign.release();
  return made;
}

Ref<Value> Value::alias(const Ref<Value>& of, const TensorSpec& spec) {
  Ref<Value> made = make(spec, of->memory_class, of->device, true);
  made->data = of->data;
  made->is_empty_ = of->is_empty_;
  made->base_ = of->base_ ? of->base_ : of;
  return made;
}

void Value::destroy(Value* v) {
  if (v->bytes_ || (v->data && !v->base_ && !v->foreign_)) {
    memory_of(v->device).put(v->data, v->bytes_, v->memory_class);
  } else if (v->foreign_) {
    if (v->foreign_->deleter) v->foreign_->deleter(v->data);
    delete v->foreign_;
  }
  delete v->packs();
  v->~Value();
  ctx.pool.put(v, sizeof(Value));
}

}  // namespace plumb::detail
