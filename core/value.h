// A value: a spec and, unless it is only captured, memory.
#pragma once

#include <functional>

#include "context.h"
#include "ref.h"
#include "spec.h"

namespace plumb::detail {

/// The data behind tensors: shared by reference, dense, 256-byte aligned unless it wraps foreign memory. While a step
/// is captured, values that ops make are symbolic: they have a spec but no memory.
class Value {
 public:
  std::atomic<uint32_t> refs{1};
  MemoryClass memory_class = MemoryClass::kActivation;
  Device device{};
  void* data = nullptr;
  TensorSpec spec;

  /// A value with memory, or a symbolic one while a step is captured.
  static Ref<Value> make(const TensorSpec& spec, MemoryClass c, Device d) {
    return make(spec, c, d, ctx.recorder != nullptr);
  }
  static Ref<Value> make(const TensorSpec& spec, MemoryClass c, Device d, bool symbolic);
  /// A value on memory that somebody else owns; `deleter` (may be empty) is called with that memory at the end.
  static Ref<Value> wrap(void* data, const TensorSpec& spec, MemoryClass c, std::function<void(void*)> deleter,
                         Device d);
  /// The same memory under another spec of the same size.
  static Ref<Value> alias(const Ref<Value>& of, const TensorSpec& spec);

  /// Only for a symbolic value, which only the capturing thread sees: its number among the values that the captured ops
  /// made, or ~0u if no captured op made it.
  uint32_t number = ~0u;

  bool is_symbolic() const { return data == nullptr && !is_empty_; }
  /// The value that owns the memory: itself, or for an alias its base.
  Value* root() { return base_ ? base_.get() : this; }
  /// The number of writes to the memory. A tensor kept for backward refuses to be read after a write.
  uint32_t version() const { return base_ ? base_->version_ : version_; }
  void bump_version() {
    ++version_;
    if (base_) ++base_->version_;
  }
  /// Undoes a bump_version: a captured write has not happened yet.
  void lower_version() {
    --version_;
    if (base_) --base_->version_;
  }
  /// For an alias: how many of the writes went through it.
  uint32_t own_writes() const { return version_; }
  /// True if nobody else can see a write to this memory.
  bool is_private() const { return refs.load(std::memory_order_acquire) == 1 && !base_ && !foreign_; }

  /// The packs of this value, by (format, version); the gate makes and keeps them (dispatch/pack.cpp).
  struct Packs {
    virtual ~Packs() = default;
  };
  Packs* packs() const { return packs_.load(std::memory_order_acquire); }
  /// Makes `fresh` this value's packs and takes ownership; if it has some already, returns false and does nothing.
  bool install_packs(Packs* fresh) {
    Packs* none = nullptr;
    return packs_.compare_exchange_strong(none, fresh, std::memory_order_acq_rel);
  }

  static void destroy(Value* v);

 private:
  struct Foreign;
  Value() = default;
  ~Value() = default;
  uint32_t version_ = 0;  // of an alias: its share of the base's writes
  bool is_empty_ = false;
  size_t bytes_ = 0;
  std::atomic<Packs*> packs_{nullptr};
  Ref<Value> base_;
  Foreign* foreign_ = nullptr;
};

}  // namespace plumb::detail
