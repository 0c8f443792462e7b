// What the library needs from a device: memory, copies, launches, events, captured graphs. Four kinds of device
// implement this interface (docs/cuda.md): CUDA's own, an emulated one whose kernels run on the host, one that is only
// described, and, in tests, one that fails as a script says.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device.h"
#include "memory.h"
#include "per_thread.h"

// Marks functions that kernels/cuda defines. A library built without CUDA refers to them weakly: they are found if the
// program links kernels/cuda as well, and are null otherwise.
#ifdef PLUMB_HAS_CUDA
#define PLUMB_IN_CUDA
#else
#define PLUMB_IN_CUDA [[gnu::weak]]
#endif

namespace plumb {

/// Blocks of a grid, or threads of a block.
struct Extent3 {
  unsigned x = 1, y = 1, z = 1;
};

/// The launch of a __global__ function whose only parameter is a plain struct.
struct KernelCall {
  const char* name;    ///< of the function, as the compiler spells it
  const char* work;    ///< the name of the prepared kernel that it belongs to: "plumb:softmax"
  const void* kernel;  ///< its address, as the host knows it
  Extent3 blocks, threads;
  const void* arguments;  ///< the struct, and its size
  size_t argument_bytes;
  void (*call)(const void* kernel, const void* arguments);  ///< on an emulated device, calls it as a host function
};

/// What planning and launches need to know of a device.
struct DeviceProperties {
  std::string name;    ///< "NVIDIA H200"
  int capability = 0;  ///< compute capability: 90 for 9.0
  int multiprocessors = 1;
  size_t memory_bytes = 0;
  std::string description{};  ///< cuDNN's JSON, if the device is only described
  int ordinal = -1;           ///< CUDA's number of a GPU
  size_t cache_bytes = 0;     ///< of its last cache before the memory; 0: not known
  /// Whether it is a GPU that the vendor's libraries know, present or only described.
  bool is_gpu() const { return ordinal >= 0 || !description.empty(); }
};

/// An error that a kernel found in its input values. It lies in memory that both host and device reach. The first
/// thread that finds an error writes it (cuda::report), and the next wait throws it.
struct Fault {
  uint64_t sentence = 0;  ///< the address of a host text, with a {} for each value; 0 if there is no fault
  int64_t values[3] = {};
};

/// A point in the order of a stream. Made once, recorded any number of times.
class RuntimeEvent {
 public:
  virtual ~RuntimeEvent() = default;
};
/// Work that was captured on a stream, to be replayed.
class RuntimeGraph {
 public:
  virtual ~RuntimeGraph() = default;
};

/// Copies in one direction.
struct Transfers {
  int64_t count = 0, bytes = 0;
  double seconds = 0;
};
/// What a device has done so far.
struct DeviceCounts {
  Transfers to_device, to_host, within, from_peer;
  int64_t waits = 0;     ///< times that the host waited for the device
  int64_t launches = 0;  ///< of single kernels
  int64_t replays = 0;   ///< of captured graphs
};
inline Transfers operator-(const Transfers& now, const Transfers& before) {
  return {now.count - before.count, now.bytes - before.bytes, now.seconds - before.seconds};
}
inline Transfers operator+(const Transfers& a, const Transfers& b) {
  return {a.count + b.count, a.bytes + b.bytes, a.seconds + b.seconds};
}
/// What the device did between `before` and `now`.
inline DeviceCounts operator-(const DeviceCounts& now, const DeviceCounts& before) {
  return {now.to_device - before.to_device, now.to_host - before.to_host, now.within - before.within,
          now.from_peer - before.from_peer, now.waits - before.waits,     now.launches - before.launches,
          now.replays - before.replays};
}
inline DeviceCounts operator+(const DeviceCounts& a, const DeviceCounts& b) {
  return {a.to_device + b.to_device, a.to_host + b.to_host,   a.within + b.within,  a.from_peer + b.from_peer,
          a.waits + b.waits,         a.launches + b.launches, a.replays + b.replays};
}

/// One per device. Everything but waits is asynchronous, in the order of its stream. Any thread may call it.
class Runtime {
 public:
  using Stream = void*;
  enum class Direction : uint8_t { kToDevice, kToHost, kWithin };

  explicit Runtime(DeviceProperties p);
  virtual ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  const DeviceProperties& properties() const { return properties_; }
  /// False for a device that is only described: kernels are prepared for it, but never run.
  virtual bool is_present() const { return true; }
  /// The allocator of the device.
  Allocator& memory() { return memory_; }
  /// The stream of the device in this process on which kernels run. Work runs in the order of the calls, whichever
  /// thread makes them, so memory that is put back can be reused at once.
  virtual Stream stream() { return nullptr; }
  /// A second one, for copies beside kernels. Neither stream waits for the other but by follow(): memory that is used
  /// on this one is kept until both are done with it.
  virtual Stream copy_stream() { return stream(); }
  /// Makes this the calling thread's current device, for libraries that ask CUDA for the current one.
  virtual void make_current() {}

  /// Uninitialised device memory, 256-byte aligned; null when there is no more.
  virtual void* allocate(size_t bytes) = 0;
  virtual void release(void* block, size_t bytes) noexcept = 0;
  /// False if blocks must not be cached or rounded up, so that accesses beyond their ends are seen.
  virtual bool keeps_blocks() const { return true; }
  /// Host memory that the device can access directly while the host continues; null when there is no more.
  virtual void* allocate_pinned(size_t bytes) = 0;
  virtual void release_pinned(void* block, size_t bytes) noexcept = 0;

  /// Copies bytes in the order of the stream. Pinned host memory must stay unchanged until the copy is done; other host
  /// memory is read before this returns. After a copy to the host, wait before reading. Captured copies are not
  /// counted.
  void copy(void* to, const void* from, size_t bytes, Direction, Stream);
  /// Copies bytes from another device's memory to this one's: after what was asked of either so far, and before what is
  /// asked of either from now on. The host does not wait. Returns false, and does nothing, if the two are no peers.
  bool copy_from(void* to, Runtime& source, const void* from, size_t bytes);
  void launch(const KernelCall&, Stream);
  /// Counts a launch that a vendor's library makes.
  void count_launch() { launches_.fetch_add(1, std::memory_order_relaxed); }
  /// Waits until all work of the stream is done; throws if any of it failed.
  void wait(Stream);

  virtual std::unique_ptr<RuntimeEvent> make_event() = 0;
  virtual void record(RuntimeEvent&, Stream) = 0;
  virtual bool is_done(const RuntimeEvent&) = 0;
  /// What is asked of the stream from now on begins when the event's stream, of this device or a peer, has passed the
  /// event as it was last recorded. The host does not wait. On devices of one stream there is nothing to do.
  virtual void follow(Stream, const RuntimeEvent&) {}
  /// Waits until the stream has passed the event.
  void wait_for(const RuntimeEvent&);
  /// The time from one event to the other; waits for both.
  virtual double seconds_between(const RuntimeEvent& from, const RuntimeEvent& to) = 0;

  /// Starts a capture. Launches and copies on the returned stream are captured instead of run.
  virtual Stream begin_capture() = 0;
  virtual std::unique_ptr<RuntimeGraph> end_capture() = 0;
  void replay(const RuntimeGraph&, Stream);

  /// Scratch memory of the calling thread, at least `bytes` large, valid until the thread asks for more. Each thread
  /// has its own, since launches of two threads' kernels may interleave.
  void* workspace(size_t bytes);
  /// Releases the calling thread's workspace and all idle memory.
  void release_idle_memory();
  /// Where kernels report errors in their input values.
  Fault* fault();
  /// What it has done so far. The time of copies that are under way is in it only if it is waited for.
  DeviceCounts counts(bool waits = true);

 protected:
  virtual void do_copy(void* to, const void* from, size_t bytes, Direction, Stream) = 0;
  /// Whether copies from the other device need not pass the host, and what makes one.
  virtual bool is_peer(const Runtime&) const { return false; }
  virtual void do_copy_from(void*, Runtime&, const void*, size_t, Stream) {}
  virtual void do_launch(const KernelCall&, Stream) = 0;
  virtual void do_wait(Stream) = 0;
  virtual void do_wait_for(const RuntimeEvent&) = 0;
  virtual void do_replay(const RuntimeGraph&, Stream) = 0;

 private:
  struct Timed {  // a copy whose duration is not yet known
    std::unique_ptr<RuntimeEvent> from, to;
    double* seconds = nullptr;
  };
  struct Workspace;
  Workspace& workspace_of_thread();
  template <class Copy>
  void counted(Transfers& sum, size_t bytes, Stream stream, const Copy& copy);
  void take_time(Timed& t);
  void throw_fault();

  DeviceProperties properties_;
  Allocator memory_;
  detail::PerThread<Workspace> workspaces_;
  std::mutex mutex_;  // guards what follows
  Fault* fault_ = nullptr;
  DeviceCounts counts_;
  std::array<Timed, 8> timed_;
  std::unique_ptr<RuntimeEvent> handed_over_;  // where a peer's stream and this one meet; under the lock of peers
  size_t next_timed_ = 0;
  std::atomic<int64_t> launches_{0}, waits_{0};
};

/// The runtime of a device other than the host; throws if there is no such device.
Runtime& runtime_of(Device d);
/// The devices of this process other than the host: those of the build, and those added later. Empty where there is
/// none.
std::vector<Device> devices();
/// Adds a device for the rest of the process.
Device add_device(std::unique_ptr<Runtime> runtime);
/// The allocator of any device.
Allocator& memory_of(Device d);

namespace detail {
/// The devices that the build provides: CUDA's, or the emulated one. If there are none, `why_none` says why.
PLUMB_IN_CUDA std::vector<std::unique_ptr<Runtime>> make_runtimes(std::string& why_none);
/// The vendor's libraries with their versions. Loads them; throws if one is missing.
PLUMB_IN_CUDA std::vector<std::string> vendor_versions();
/// A symbol that only kernels/cuda defines: a linker option can require it, and so link these kernels.
extern "C" PLUMB_IN_CUDA const char plumb_cuda_kernels;
/// Whether the kernels of kernels/cuda are in this program.
inline bool has_cuda_kernels() {
#ifdef PLUMB_HAS_CUDA
  return true;
#else
  return &make_runtimes != nullptr;
#endif
}
/// Copies memory between any two devices. A copy to the host waits; one between devices that are no peers goes through
/// the host.
void copy_bytes(void* to, Device to_device, const void* from, Device from_device, size_t bytes);
}  // namespace detail

}  // namespace plumb
