// What a device other than the host does for the library: memory, copies, launches, events, captured graphs. Four kinds
// of device stand behind this seam (docs/cuda.md): CUDA's own, an emulated one whose kernels run on the host, one that
// is only described, and, in tests, one that fails by a script.
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

// Stands before what kernels/cuda defines. A library without CUDA refers to it weakly: where a program links these
// kernels beside it, they are found, and where none does, there is nothing to stand in for them.
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

/// The launch of a __global__ function that takes one plain struct.
struct KernelCall {
  const char* name;    ///< of the function, as the compiler writes it
  const char* work;    ///< of the prepared kernel that it is a part of: "plumb:softmax"
  const void* kernel;  ///< its address, as the host knows it
  Extent3 blocks, threads;
  const void* arguments;  ///< the struct, and its size
  size_t argument_bytes;
  void (*call)(const void* kernel, const void* arguments);  ///< calls it as a function of the host
};

/// What planning and the arithmetic of launches need to know of a device.
struct DeviceProperties {
  std::string name;    ///< "NVIDIA H200"
  int capability = 0;  ///< 90 for 9.0
  int multiprocessors = 1;
  size_t memory_bytes = 0;
  std::string description{};  ///< cuDNN's JSON, of a device that is only described
  int ordinal = -1;           ///< CUDA's number of a GPU
  size_t cache_bytes = 0;     ///< of its last cache before the memory; 0: not known
  /// Whether it is a GPU, here or only described, that the vendor's libraries know.
  bool is_gpu() const { return ordinal >= 0 || !description.empty(); }
};

/// What a kernel found wrong with the numbers it was given. It lies where host and device reach it; the first thread
/// that finds something writes it (cuda::report), and the next wait throws it.
struct Fault {
  uint64_t sentence = 0;  ///< the address of a text of the host, with a {} for each value; 0 while all is well
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
/// What a device was asked for so far.
struct DeviceCounts {
  Transfers to_device, to_host, within;
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
/// What was asked for since `before`.
inline DeviceCounts operator-(const DeviceCounts& now, const DeviceCounts& before) {
  return {now.to_device - before.to_device, now.to_host - before.to_host,   now.within - before.within,
          now.waits - before.waits,         now.launches - before.launches, now.replays - before.replays};
}
inline DeviceCounts operator+(const DeviceCounts& a, const DeviceCounts& b) {
  return {a.to_device + b.to_device, a.to_host + b.to_host,   a.within + b.within,
          a.waits + b.waits,         a.launches + b.launches, a.replays + b.replays};
}

/// One a device. All but waits are asynchronous, in the order of the stream. Any thread may call it.
class Runtime {
 public:
  using Stream = void*;
  enum class Direction : uint8_t { kToDevice, kToHost, kWithin };

  explicit Runtime(DeviceProperties p);
  virtual ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  const DeviceProperties& properties() const { return properties_; }
  /// False for a device that is only described: kernels are prepared for it, and not run.
  virtual bool is_present() const { return true; }
  /// The allocator of the device.
  Allocator& memory() { return memory_; }
  /// The stream that the work of this process goes to. One a device: its order is that of the calls, whichever thread
  /// makes them, so that memory that is put back may be handed out again at once.
  virtual Stream stream() { return nullptr; }
  /// Makes it the calling thread's current device, for libraries that ask CUDA which one that is.
  virtual void make_current() {}

  /// Uninitialised memory of the device, 256-byte aligned, or null when there is no more.
  virtual void* allocate(size_t bytes) = 0;
  virtual void release(void* block, size_t bytes) noexcept = 0;
  /// False where every block is to be a fresh one, so that accesses beyond its ends are seen.
  virtual bool keeps_blocks() const { return true; }
  /// Memory of the host that the device reads and writes by itself while the host goes on, or null.
  virtual void* allocate_pinned(size_t bytes) = 0;
  virtual void release_pinned(void* block, size_t bytes) noexcept = 0;

  /// Copies bytes in the order of the stream. The host's side must stay as it is until then, unless it is not pinned,
  /// in which case it is read before this returns. To the host: wait before reading. Copies that are captured are not
  /// among the counts.
  void copy(void* to, const void* from, size_t bytes, Direction, Stream);
  void launch(const KernelCall&, Stream);
  /// Counts the launch of a vendor's library.
  void count_launch() { launches_.fetch_add(1, std::memory_order_relaxed); }
  /// Waits until all work of the stream is done, and throws what went wrong in it.
  void wait(Stream);

  virtual std::unique_ptr<RuntimeEvent> make_event() = 0;
  virtual void record(RuntimeEvent&, Stream) = 0;
  virtual bool is_done(const RuntimeEvent&) = 0;
  /// Waits until the stream has passed the event.
  void wait_for(const RuntimeEvent&);
  /// Waits for both.
  virtual double seconds_between(const RuntimeEvent& from, const RuntimeEvent& to) = 0;

  /// The stream on which launches and copies are captured from now on, instead of being done.
  virtual Stream begin_capture() = 0;
  virtual std::unique_ptr<RuntimeGraph> end_capture() = 0;
  void replay(const RuntimeGraph&, Stream);

  /// Scratch memory of the calling thread, at least so large; good until the thread asks for more. One a thread: the
  /// launches of a kernel may have those of another thread's between them.
  void* workspace(size_t bytes);
  /// Gives back the thread's workspace and all memory that lies idle.
  void release_idle_memory();
  /// Where kernels report what is wrong with their numbers.
  Fault* fault();
  DeviceCounts counts();

 protected:
  virtual void do_copy(void* to, const void* from, size_t bytes, Direction, Stream) = 0;
  virtual void do_launch(const KernelCall&, Stream) = 0;
  virtual void do_wait(Stream) = 0;
  virtual void do_wait_for(const RuntimeEvent&) = 0;
  virtual void do_replay(const RuntimeGraph&, Stream) = 0;

 private:
  struct Timed {  // a copy whose time is not yet known
    std::unique_ptr<RuntimeEvent> from, to;
    double* seconds = nullptr;
  };
  struct Workspace;
  Workspace& workspace_of_thread();
  void take_time(Timed& t);
  void throw_fault();

  DeviceProperties properties_;
  Allocator memory_;
  detail::PerThread<Workspace> workspaces_;
  std::mutex mutex_;  // guards what follows
  Fault* fault_ = nullptr;
  DeviceCounts counts_;
  std::array<Timed, 8> timed_;
  size_t next_timed_ = 0;
  std::atomic<int64_t> launches_{0}, waits_{0};
};

/// The runtime of a device that is not the host; throws a sentence where there is none.
Runtime& runtime_of(Device d);
/// The devices of this process beside the host: those of the build, and those that were added.
std::vector<Device> devices();
/// Adds a device for the rest of the process.
Device add_device(std::unique_ptr<Runtime> runtime);
/// The allocator of any device.
Allocator& memory_of(Device d);

namespace detail {
/// The devices that the build brings: CUDA's, or the emulated one. `why_none` says why there is none.
PLUMB_IN_CUDA std::vector<std::unique_ptr<Runtime>> make_runtimes(std::string& why_none);
/// The vendor's libraries with their versions; opens them, and throws a sentence where one is missing.
PLUMB_IN_CUDA std::vector<std::string> vendor_versions();
/// The name by which a linker is asked for the kernels of a library that has them.
extern "C" PLUMB_IN_CUDA const char plumb_cuda_kernels;
/// Whether the kernels of kernels/cuda are in this program.
inline bool has_cuda_kernels() {
#ifdef PLUMB_HAS_CUDA
  return true;
#else
  return &make_runtimes != nullptr;
#endif
}
/// Copies memory between any two devices. To the host it waits; between two devices it goes by way of the host.
void copy_bytes(void* to, Device to_device, const void* from, Device from_device, size_t bytes);
}  // namespace detail

}  // namespace plumb
