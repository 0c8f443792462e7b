// What a capture has gathered: the nodes of a step before they become a program.
#pragma once

#include "../kernels/recorder.h"

namespace plumb::detail {

/// One application of a kernel.
struct RecordedOp {
  Ref<Prepared> kernel;
  std::vector<Ref<Value>> in, out;
  Writes writes;
  Phase phase = Phase::kForward;
  bool is_pack = false;
};

class Recording final : public Recorder {
 public:
  void append(Prepared* kernel, Inputs in, std::span<const Ref<Value>> out, Writes writes) override;
  Ref<Value> find_pack(Value* plain, Layout pack) override;
  void keep_pack(Value* plain, const Ref<Value>& packed) override;
  uint32_t references(const Value* v) const override;

  std::vector<RecordedOp> ops;

 private:
  struct Pack {
    Ref<Value> plain;
    uint32_t version;
    Ref<Value> packed;
  };
  std::vector<Pack> packs_;
};

/// Leaves out the ops on which neither an output nor a write depends.
void prune(std::vector<RecordedOp>& ops, const TensorList& outputs);

/// A value's place in time: from the step that makes it to the last that reads it.
struct Lifetime {
  size_t bytes;
  int first, last;
  size_t offset = 0;  ///< found by plan_memory
};
/// Gives values whose lifetimes do not meet the same memory: largest first, each at the lowest offset that is free.
/// Returns the bytes of the whole.
size_t plan_memory(std::vector<Lifetime>& values);

}  // namespace plumb::detail
