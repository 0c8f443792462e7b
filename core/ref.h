// An intrusive reference-counted pointer.
#pragma once

#include <atomic>
#include <utility>

namespace plumb::detail {

/// Shares ownership of an object that has an atomic `refs` and a static `destroy`. As large as one pointer.
template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  /// Adds a reference to `object`, which may be null.
  explicit Ref(T* object) : p_(object) {
    if (p_) p_->refs.fetch_add(1, std::memory_order_relaxed);
  }
  /// Takes over a reference that the count already includes.
  static Ref adopt(T* object) {
    Ref r;
    r.p_ = object;
    return r;
  }
  Ref(const Ref& o) : Ref(o.p_) {}
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Ref& operator=(const Ref& o) {
    Ref copy(o);
    std::swap(p_, copy.p_);
    return *this;
  }
  Ref& operator=(Ref&& o) noexcept {
    Ref moved(std::move(o));
    std::swap(p_, moved.p_);
    return *this;
  }
  ~Ref() {
    if (p_) drop(p_);
  }

  T* get() const { return p_; }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }
  /// Gives up the pointer without lowering the count.
  T* release() { return std::exchange(p_, nullptr); }
  bool sole_owner() const { return p_ && p_->refs.load(std::memory_order_acquire) == 1; }

 private:
  static void drop(T* object) {  // a sole owner needs no locked instruction
    if (object->refs.load(std::memory_order_acquire) == 1 ||
        object->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      T::destroy(object);
    }
  }
  T* p_ = nullptr;
};

}  // namespace plumb::detail
