// A recording: the ops of a captured step before they become a program.
#pragma once

#include <unordered_map>

#include "dispatch/recorder.h"

namespace plumb::detail {

/// What a recorded op reads or writes: the number of a value that an op of the capture made, or an index into
/// Recording::outside for a value from outside the capture.
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

/// One call of a kernel. Its sources are consecutive in the recording: first the inputs, then the outputs, then the
/// values that it writes.
struct RecordedOp {
  Ref<PreparedKernel> kernel;
  size_t first = 0;
  uint32_t n_in = 0, n_out = 0, n_written = 0;
  Phase phase = Phase::kForward;
  bool is_pack = false;
};

/// Holds the values from outside the capture. Of values that the ops make it keeps only the sizes: they die when the
/// function releases them, as in an eager run. So capturing a step of any length takes about the memory and time of an
/// eager run.
class Recording final : public Recorder {
 public:
  Recording() = default;
  Recording(const Recording&) = delete;
  /// Restores the versions from before, since nothing was written while capturing.
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

  /// How many values the ops have made; their numbers start at 0.
  size_t made() const { return made_.size(); }
  size_t bytes_of(size_t number) const { return made_[number].bytes; }
  /// Whether an op of this capture made the value. The value must be alive, so that its number is valid.
  bool has_made(const Value* v) const {
    return v->is_symbolic() && v->number < made_.size() && made_[v->number].value == v;
  }
  /// Removes the ops that affect no output and no write.
  void prune(const TensorList& outputs);

  std::vector<RecordedOp> ops;
  std::vector<Ref<Value>> outside;  ///< may include values of an earlier capture; using one is an error

 private:
  struct Made {
    const Value* value;  // may be dead: another value may have its address, but not its number as well
    size_t bytes;
  };
  struct Pack {
    Ref<Value> plain;  // held, since its address is the key
    uint32_t version;
    Ref<Value> packed;
  };
  Source source_of(Value* v);
  std::vector<Source> sources_;
  std::vector<Made> made_;
  std::vector<Ref<Value>> raised_;                     // from outside; once for each raise of its version
  std::unordered_multimap<const Value*, Pack> packs_;  // key: the root of the plain value
};

}  // namespace plumb::detail
