// All implicit state of a thread, in one place.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "device.h"
#include "memory.h"
#include "pool.h"

namespace plumb {

class Observer;  // dispatch/recorder.h: what the gate tells of every kernel that ran
namespace detail {
class Recorder;  // dispatch/recorder.h: what the gate appends to while capturing
class Node;      // core/tape.h
}  // namespace detail

/// How the gate picks among the candidates for one piece of work.
enum class Search : uint8_t {
  kHeuristic,      ///< the first candidate that fits, in the order its author gave
  kMeasured,       ///< every candidate is timed once on this machine, and the result kept on disk
  kDeterministic,  ///< as kHeuristic; throws where all candidates have other results from run to run. The others leave
                   ///< those out only while there is another, and take one that is named by Policy::algorithm
};

/// How f32 products are computed. Fast modes are asked for by name: kTf32 throws where there is none (on the CPU),
/// kBf16 rounds the factors to bf16 in kernels for which the processor has that, and leaves the others strict.
enum class MathMode : uint8_t { kStrict, kTf32, kBf16 };

/// Which part of a training step a kernel belongs to, for profiles.
enum class Phase : uint8_t { kForward, kBackward, kUpdate };

/// The part of a kernel's key that comes from the context and not from its specs.
struct Policy {
  Search search = Search::kHeuristic;
  MathMode math = MathMode::kStrict;
  uint16_t algorithm = 0;  ///< 0, or algorithm_id("winograd"): candidates of that family go first
  uint16_t threads = 0;    ///< 0: as many as OpenMP has; set by set_threads alone, which tells OpenMP as well
  Device device{};         ///< where kernels without inputs run; set by DeviceScope alone
  bool operator==(const Policy&) const = default;
};
static_assert(sizeof(Policy) == 8);

/// The number of a family of algorithms ("direct", "winograd", "gemm", ...), for Policy::algorithm; 0 for "". The same
/// name gives the same number. Throws on a name with which none begins that the library or register_algorithm knows.
uint16_t algorithm_id(std::string_view name);
/// Makes the name of one of a program's own algorithms known, and returns its number. Preparing a kernel does the same
/// for the names of all its candidates.
uint16_t register_algorithm(std::string_view name);
/// The name behind a number; throws on a number that was never given.
std::string_view algorithm_name(uint16_t id);
/// Whether an algorithm is the one that is named, or of the family of that name: "winograd_f2x2" is of "winograd", and
/// "cudnn_e38" of "cudnn" but not of "cudnn_e3". All are of "".
inline bool is_of_family(std::string_view algorithm, std::string_view family) {
  return algorithm.starts_with(family) &&
         (family.empty() || algorithm.size() == family.size() || algorithm[family.size()] == '_');
}

namespace detail {

/// One per thread. Everything implicit is here; scopes (below) change one field and restore it.
struct Context {
  Recorder* recorder = nullptr;  ///< set while a step is captured
  Observer* observer = nullptr;  ///< set while kernels are watched (profile, NaN check)
  bool recording = true;         ///< whether ops on tensors that need a gradient are put on the tape
  MemoryClass memory_class = MemoryClass::kActivation;  ///< of the values that ops make
  Phase phase = Phase::kForward;
  Policy policy{};
  uint64_t sequence = 0;      ///< number of the last tape node
  void* workspace = nullptr;  ///< of the host's kernels; a device has its own (core/runtime.h)
  size_t workspace_bytes = 0;
  void* front = nullptr;  ///< this thread's table of prepared kernels (dispatch/kernel_cache.cpp)
  Node* dying = nullptr;  ///< nodes to be destroyed by the sweep that is under way
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

/// While it lives, nothing is put on the tape.
struct NoGrad : detail::Scoped<bool> {
  NoGrad() : Scoped(detail::ctx.recording, false) {}
};
/// While it lives, ops on tensors that need a gradient are put on the tape: inside a NoGrad, or inside the gradient
/// closure of an op that computes its forward again.
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
/// While it lives, kernels are picked this way, by as many threads and on the device as before: these belong to
/// set_threads and DeviceScope.
class PolicyScope {
 public:
  /// Throws on values that are none of the enumerators', and on the number of an algorithm that was never given.
  explicit PolicyScope(Policy c);
  ~PolicyScope() { set(old_); }
  PolicyScope(const PolicyScope&) = delete;
  PolicyScope& operator=(const PolicyScope&) = delete;

 private:
  static void set(Policy c) {
    c.threads = detail::ctx.policy.threads;
    c.device = detail::ctx.policy.device;
    detail::ctx.policy = c;
  }
  Policy old_;
};

/// How many threads the kernels of the calling thread use.
int threads();
/// Sets it for the calling thread, from 1 to most_threads(). Throws also when the system cannot run so many.
void set_threads(int n);
inline constexpr int kMostThreads = 4096;
/// kMostThreads, or less where OMP_THREAD_LIMIT says so.
int most_threads();
/// Makes denormal results zero on the calling thread and on its pool of worker threads. Programs do this once at the
/// start.
void flush_denormals();
/// For programs, before any kernel runs: teams of OpenMP get the threads that they ask for (oneDNN's kernels wait for
/// them), OMP_DYNAMIC or not, and OMP_THREAD_LIMIT holds. Throws a sentence when OMP_NUM_THREADS is out of reach.
void set_up_threads();

namespace detail {
/// How many threads kernels use under a policy.
int threads_of(const Policy& c);
/// Registers what must happen when the calling thread ends (workspace, tables, pool). Cheap to call again.
void watch_thread_end(void (*release_front)(void*) = nullptr);
/// Makes the workspace of this thread at least `bytes` large.
void grow_workspace(size_t bytes);
/// Gives back the workspace of this thread, or of the device, until a kernel needs one again, and all memory of it that
/// lies idle.
void release_idle_memory(Device d = {});
}  // namespace detail

}  // namespace plumb
