// What a capture has gathered: the nodes of a step before they become a program.
#pragma once

#include <unordered_map>

#include "kernels/recorder.h"

namespace plumb::detail {

/// One application of a kernel. Its values stand in Recording::values: first the inputs, then the outputs, then what it
/// writes.
struct RecordedOp {
  Ref<Prepared> kernel;
  size_t first = 0;
  uint32_t n_in = 0, n_out = 0, n_written = 0;
  Phase phase = Phase::kForward;
  bool is_pack = false;
};

class Recording final : public Recorder {
 public:
  Recording() = default;
  Recording(const Recording&) = delete;
  /// Nothing was written while capturing: versions are again what they were before.
  ~Recording();
  void append(Prepared* kernel, Inputs plain, Inputs in, std::span<const Ref<Value>> out, Writes writes) override;
  Ref<Value> find_pack(Value* plain, Layout pack) override;
  void keep_pack(Value* plain, const Ref<Value>& packed) override;

  using Values = std::span<const Ref<Value>>;
  Values in(const RecordedOp& op) const { return {values_.data() + op.first, op.n_in}; }
  Values out(const RecordedOp& op) const { return {values_.data() + op.first + op.n_in, op.n_out}; }
  Values written(const RecordedOp& op) const { return {values_.data() + op.first + op.n_in + op.n_out, op.n_written}; }

  /// How many values the ops have made; they are numbered from 0.
  size_t made() const { return made_.size(); }
  /// Whether an op of this capture made the value: its number is good then.
  bool has_made(const Value* v) const { return v->is_symbolic() && v->number < made_.size() && made_[v->number] == v; }
  /// Leaves out the ops on which neither an output nor a write depends.
  void prune(const TensorList& outputs);

  std::vector<RecordedOp> ops;

 private:
  struct Pack {
    uint32_t version;
    Value* packed;
  };
  void hold(Value* v);
  std::vector<Ref<Value>> values_;
  std::vector<const Value*> made_;
  std::vector<Value*> raised_;                         // whose versions are, once for each time
  std::unordered_multimap<const Value*, Pack> packs_;  // by the root of the plain value
};

}  // namespace plumb::detail
