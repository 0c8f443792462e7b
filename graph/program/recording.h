// What a capture has gathered: the nodes of a step before they become a program.
#pragma once

#include <unordered_map>

#include "dispatch/recorder.h"

namespace plumb::detail {

/// What a recorded op reads or writes: a value that an op of the capture made, by its number, or one that is there
/// without the capture, by its place in Recording::outside.
class Source {
 public:
  static Source made(size_t number) { return Source(static_cast<uint32_t>(number)); }
  static Source outside(size_t place) { return Source(static_cast<uint32_t>(place) | kOutside); }
  bool is_made() const { return (bits_ & kOutside) == 0; }
  size_t index() const { return bits_ & ~kOutside; }

 private:
  static constexpr uint32_t kOutside = 1u << 31;
  explicit Source(uint32_t bits) : bits_(bits) {}
  uint32_t bits_;
};

/// One application of a kernel. Its sources stand in a row in the recording: first the inputs, then the outputs, then
/// what it writes.
struct RecordedOp {
  Ref<PreparedKernel> kernel;
  size_t first = 0;
  uint32_t n_in = 0, n_out = 0, n_written = 0;
  Phase phase = Phase::kForward;
  bool is_pack = false;
};

/// Holds what is there without the capture, and of the values that the ops make no more than their sizes: they die when
/// the function lets go of them, as in an eager run, so that a step of any length is captured in about the memory, and
/// the time, of that.
class Recording final : public Recorder {
 public:
  Recording() = default;
  Recording(const Recording&) = delete;
  /// Nothing was written while capturing: versions are again what they were before.
  ~Recording();
  void append(PreparedKernel* kernel, Inputs plain, Inputs in, std::span<const Ref<Value>> out, Writes writes) override;
  Ref<Value> find_pack(Value* plain, Layout pack) override;
  void keep_pack(Value* plain, const Ref<Value>& packed) override;

  using Sources = std::span<const Source>;
  Sources in(const RecordedOp& op) const { return {sources_.data() + op.first, op.n_in}; }
  Sources out(const RecordedOp& op) const { return {sources_.data() + op.first + op.n_in, op.n_out}; }
  Sources written(const RecordedOp& op) const {
    return {sources_.data() + op.first + op.n_in + op.n_out, op.n_written};
  }

  /// How many values the ops have made; they are numbered from 0.
  size_t made() const { return made_.size(); }
  size_t bytes_of(size_t number) const { return made_[number].bytes; }
  /// Whether an op of this capture made the value, which must be alive: its number is good then.
  bool has_made(const Value* v) const {
    return v->is_symbolic() && v->number < made_.size() && made_[v->number].value == v;
  }
  /// Leaves out the ops on which neither an output nor a write depends.
  void prune(const TensorList& outputs);

  std::vector<RecordedOp> ops;
  std::vector<Ref<Value>> outside;  ///< also values of an earlier capture, which are an error where they are used

 private:
  struct Made {
    const Value* value;  // it may be dead, and another value in its place, but none of its number
    size_t bytes;
  };
  struct Pack {
    Ref<Value> plain;  // its address is the key, and stays its own
    uint32_t version;
    Ref<Value> packed;
  };
  Source source_of(Value* v);
  std::vector<Source> sources_;
  std::vector<Made> made_;
  std::vector<Ref<Value>> raised_;                     // from outside, whose versions are, once for each time
  std::unordered_multimap<const Value*, Pack> packs_;  // by the root of the plain value
};

}  // namespace plumb::detail
