// The narrow seams in the context: what the gate tells a capture, and what it tells an observer.
#pragma once

#include "kernels/gate.h"

namespace plumb {

/// Gathers the work of a step while it is captured, instead of running it.
class Recorder {
 public:
  virtual void append(Prepared* kernel, Inputs in, std::span<const Ref<Value>> out, Writes writes) = 0;
  /// A pack that this capture has made of the value as it is now, or null.
  virtual Ref<Value> find_pack(Value* plain, Layout pack) = 0;
  virtual void keep_pack(Value* plain, const Ref<Value>& packed) = 0;

 protected:
  ~Recorder() = default;
};

/// Told of every kernel that runs on the thread, eager or captured.
class Observer {
 public:
  virtual void before(const Prepared&) {}
  virtual void after(const Prepared&, const Launch&) {}

 protected:
  ~Observer() = default;
};

}  // namespace plumb
