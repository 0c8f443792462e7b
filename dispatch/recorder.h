// Two small interfaces in the context: the gate tells a Recorder of captured work, and an Observer of kernels that ran.
#pragma once

#include "gate.h"

namespace plumb {

namespace detail {
/// Collects the kernels of a step while it is captured, instead of running them.
class Recorder {
 public:
  /// Records a kernel that the gate would run now, on values that may be symbolic. `plain` are its inputs; `in` are the
  /// same with packs in place of packed inputs. The versions of inputs in `writes` are raised until the capture ends.
  virtual void append(PreparedKernel* kernel, Inputs plain, Inputs in, std::span<const Ref<Value>> out,
                      Writes writes) = 0;
  /// The pack that this capture made of the value in its current version, or null.
  virtual Ref<Value> find_pack(Value* plain, Layout pack) = 0;
  /// Remembers a pack of the value's current version, for find_pack.
  virtual void keep_pack(Value* plain, const Ref<Value>& packed) = 0;

 protected:
  ~Recorder() = default;
};
}  // namespace detail

/// Is told of every kernel that runs on the thread, eager or captured. It may run ops itself, except, during a repack,
/// ops on the value that is being packed.
class Observer {
 public:
  /// The kernel is about to run.
  virtual void before(const PreparedKernel&) {}
  /// The kernel has run. The launch's pointers are the inputs as the kernel took them (packs for packed inputs) and the
  /// outputs; they are valid until this returns.
  virtual void after(const PreparedKernel&, const Launch&) {}

 protected:
  ~Observer() = default;
};
/// While it lives, this observer (none if null), not the previous one, is told of the calling thread's kernels.
struct ObserverScope : detail::Scoped<Observer*> {
  explicit ObserverScope(Observer* o) : Scoped(detail::ctx.observer, o) {}
};

}  // namespace plumb
