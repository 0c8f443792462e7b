// All implicit state of a thread, in one place.
#pragma once

#include <cstdint>
#include <utility>

#include "device.h"
#include "memory.h"
#include "pool.h"

namespace plumb {

class Observer;  // dispatch/recorder.h: the gate tells it of every kernel that ran
namespace detail {
class Recorder;  // dispatch/recorder.h: the gate appends every op to it while a step is captured
class Node;      // core/tape_node.h
}  // namespace detail

/// How the gate picks among the candidates for one piece of work.
enum class Search : uint8_t {
  kHeuristic,      ///< the first candidate that fits, in the order its author gave
  kMeasured,       ///< every candidate is timed once on this machine, and the result kept on disk
  kDeterministic,  ///< as kHeuristic, but only among candidates whose results have the same bits in every run; throws
                   ///< if there are none. The others prefer such candidates, unless Policy::algorithm names another
  kHeuristicB,     ///< as kHeuristic, by the vendor's other heuristic, if it has one (cuDNN's mode B)
  kFallback,       ///< as kHeuristic, but first what the vendor's library calls its fallbacks, which always work
};

/// Which of a backend's kernels may run, wherever there is a choice.
enum class KernelSet : uint8_t {
  kAll,     ///< the vendor's library and Plumbline's own: the best that is known
  kVendor,  ///< the vendor's library (oneDNN, cuDNN, cuBLASLt) where it has the op, Plumbline's own elsewhere
};

/// How f32 products are computed. Fast modes must be asked for by name. kTf32 throws where there is none (on the CPU).
/// kBf16 rounds the factors to bf16 in kernels for which the processor supports it; other kernels stay strict.
enum class MathMode : uint8_t { kStrict, kTf32, kBf16 };

/// Which part of a training step a kernel belongs to, for profiles.
enum class Phase : uint8_t { kForward, kBackward, kUpdate };

/// How a kernel is picked: the part of a kernel's key that comes from the context, not from its specs. The fields are
/// independent: which set of kernels, how to search it, which candidates go first.
struct Policy {
  Search search = Search::kHeuristic;
  KernelSet kernels = KernelSet::kAll;
  MathMode math = MathMode::kStrict;
  uint16_t algorithm = 0;  ///< 0, or algorithm_id("winograd"): candidates of that family go first
  uint16_t threads = 0;    ///< 0: as many as OpenMP has; only set_threads sets it, since OpenMP must be told as well
  Device device{};         ///< where kernels without inputs run; only DeviceScope sets it
  bool operator==(const Policy&) const = default;
  /// All fields packed into one word, for hashing.
  uint64_t word() const {
    return static_cast<uint64_t>(search) | static_cast<uint64_t>(kernels) << 4 | static_cast<uint64_t>(math) << 8 |
           static_cast<uint64_t>(device.type) << 12 | static_cast<uint64_t>(device.index) << 16 |
           static_cast<uint64_t>(algorithm) << 32 | static_cast<uint64_t>(threads) << 48;
  }
};

namespace detail {

/// One per thread. All implicit state is here; scopes (below) change one field and restore it.
struct Context {
  Recorder* recorder = nullptr;  ///< set while a step is captured
  Observer* observer = nullptr;  ///< set while kernels are watched (profile, NaN check)
  bool recording = true;         ///< whether ops on tensors that need a gradient are put on the tape
  MemoryClass memory_class = MemoryClass::kActivation;  ///< the class of memory for values that ops make
  Phase phase = Phase::kForward;
  Policy policy{};
  uint64_t sequence = 0;      ///< the number of the last tape node
  void* workspace = nullptr;  ///< for the host's kernels; a device has its own (core/runtime.h)
  size_t workspace_bytes = 0;
  void* front = nullptr;  ///< this thread's table of prepared kernels (dispatch/kernel_cache.cpp)
  Node* dying = nullptr;  ///< nodes that the running sweep will destroy
  bool sweeping = false;
  Pool pool;
};
inline constinit thread_local Context ctx;

/// Sets a field of the context and restores it at the end of the scope.
template <class T>
class Scoped {
 public:
  Scoped(T& field, T value) : field_(field), old_(std::exchange(field, value)) {}
  ~Scoped() { field_ = old_; }
  Scoped(const Scoped&) = delete;
  Scoped& operator=(const Scoped&) = delete;

 private:
  T& field_;
  T old_;
};

}  // namespace detail

/// While it lives, no op is put on the tape.
struct NoGrad : detail::Scoped<bool> {
  NoGrad() : Scoped(detail::ctx.recording, false) {}
};
/// While it lives, ops on tensors that need a gradient are put on the tape, even inside a NoGrad or inside the gradient
/// closure of an op that recomputes its forward pass.
struct EnableGrad : detail::Scoped<bool> {
  EnableGrad() : Scoped(detail::ctx.recording, true) {}
};
/// Whether ops on tensors that need a gradient are put on the tape now, in the calling thread.
inline bool is_recording() { return detail::ctx.recording; }
/// While it lives, values made by ops count as this class of memory.
struct MemoryScope : detail::Scoped<MemoryClass> {
  explicit MemoryScope(MemoryClass c) : Scoped(detail::ctx.memory_class, c) {}
};
/// While it lives, ops without inputs make their results on this device: full, zeros, uniform, an optimizer's state.
struct DeviceScope : detail::Scoped<Device> {
  explicit DeviceScope(Device d) : Scoped(detail::ctx.policy.device, d) {}
};
namespace detail {
/// Makes sure that the calling thread releases its workspace, tables and pool when it ends. Cheap to call again.
void watch_thread_end(void (*release_front)(void*) = nullptr);
/// Makes the workspace of this thread at least `bytes` large.
void grow_workspace(size_t bytes);
/// Releases all idle memory of a device, and the calling thread's workspace on it until a kernel needs one again.
void release_idle_memory(Device d = {});
}  // namespace detail

}  // namespace plumb
