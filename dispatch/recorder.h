// The narrow seams in the context: what the gate tells a capture, and what it tells an observer.
#pragma once

#include "gate.h"

namespace plumb {

namespace detail {
/// Gathers the work of a step while it is captured, instead of running it.
class Recorder {
 public:
  /// A kernel that the gate would run now, on values that may be symbolic. `plain` are its inputs, `in` the same with
  /// the packs that it takes in their places; those in `writes` are written, and their versions raised until the
  /// capture ends.
  virtual void append(PreparedKernel* kernel, Inputs plain, Inputs in, std::span<const Ref<Value>> out,
                      Writes writes) = 0;
  /// A pack that this capture has made of the value as it is now, or null.
  virtual Ref<Value> find_pack(Value* plain, Layout pack) = 0;
  /// Remembers a pack of the value as it is now, for find_pack.
  virtual void keep_pack(Value* plain, const Ref<Value>& packed) = 0;

 protected:
  ~Recorder() = default;
};
}  // namespace detail

/// Told of every kernel that runs on the thread, eager or captured. It may run ops of its own, but around a repack none
/// on the value that is being packed.
class Observer {
 public:
  /// The kernel is about to run.
  virtual void before(const PreparedKernel&) {}
  /// The kernel has run. The pointers of the launch are its inputs as it took them (packed ones as packs) and its
  /// outputs, and hold until this returns.
  virtual void after(const PreparedKernel&, const Launch&) {}

 protected:
  ~Observer() = default;
};
/// While it lives, the observer (none if null) is told of what runs on the calling thread, instead of the one before.
struct ObserverScope : detail::Scoped<Observer*> {
  explicit ObserverScope(Observer* o) : Scoped(detail::ctx.observer, o) {}
};

}  // namespace plumb
