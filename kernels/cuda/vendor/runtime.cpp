// CUDA's devices behind the seam of core/runtime.h.
#include "core/runtime.h"

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <set>

#include "core/error.h"
#include "kernels/cuda/vendor/cublaslt.h"
#include "kernels/cuda/vendor/cudnn.h"
#include "kernels/cuda/vendor/why_no_device.h"

namespace plumb::cuda {
namespace {

constexpr int kOldestCapability = 80;  // what the kernels are compiled for

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) [[likely]]
    return;
  cudaGetLastError();  // forgotten, unless it is of the kind that stays
  fail("{}: CUDA says {} ({})", what, cudaGetErrorString(status), cudaGetErrorName(status));
}

struct Event final : RuntimeEvent {
  cudaEvent_t event = nullptr;
  ~Event() override { cudaEventDestroy(event); }
};
cudaEvent_t event_of(const RuntimeEvent& e) { return static_cast<const Event&>(e).event; }

struct Graph final : RuntimeGraph {
  cudaGraphExec_t exec = nullptr;
  ~Graph() override { cudaGraphExecDestroy(exec); }
};

class CudaRuntime final : public Runtime {
 public:
  explicit CudaRuntime(DeviceProperties p) : Runtime(std::move(p)) {}

  // Made with the first work: a process that only asks which devices there are takes no memory of any.
  Stream stream() override {
    if (!stream_) [[unlikely]]
      open();
    return stream_;
  }

  Stream copy_stream() override {
    if (!copy_stream_) [[unlikely]]
      open();
    return copy_stream_;
  }

  void make_current() override { select(); }

  void* allocate(size_t bytes) override {
    select();
    void* block = nullptr;
    const cudaError_t status = cudaMalloc(&block, bytes);
    if (status == cudaErrorMemoryAllocation) return cudaGetLastError(), nullptr;
    check(status, "cudaMalloc");
    return block;
  }
  void release(void* block, size_t) noexcept override { cudaFree(block); }
  void* allocate_pinned(size_t bytes) override {
    select();
    void* block = nullptr;
    const cudaError_t status = cudaHostAlloc(&block, bytes, cudaHostAllocPortable | cudaHostAllocMapped);
    if (status == cudaErrorMemoryAllocation) return cudaGetLastError(), nullptr;
    check(status, "cudaHostAlloc");
    return block;
  }
  void release_pinned(void* block, size_t) noexcept override { cudaFreeHost(block); }

  std::unique_ptr<RuntimeEvent> make_event() override {
    select();
    auto made = std::make_unique<Event>();
    check(cudaEventCreate(&made->event), "cudaEventCreate");
    return made;
  }
  void record(RuntimeEvent& e, Stream s) override {
    select();
    check(cudaEventRecord(event_of(e), static_cast<cudaStream_t>(s)), "cudaEventRecord");
  }
  bool is_done(const RuntimeEvent& e) override {
    const cudaError_t status = cudaEventQuery(event_of(e));
    if (status == cudaErrorNotReady) return cudaGetLastError(), false;
    check(status, "work on the device");
    return true;
  }
  void follow(Stream s, const RuntimeEvent& e) override {
    select();
    check(cudaStreamWaitEvent(static_cast<cudaStream_t>(s), event_of(e), 0), "cudaStreamWaitEvent");
  }
  double seconds_between(const RuntimeEvent& from, const RuntimeEvent& to) override {
    float milliseconds = 0;
    check(cudaEventSynchronize(event_of(to)), "work on the device");
    check(cudaEventElapsedTime(&milliseconds, event_of(from), event_of(to)), "cudaEventElapsedTime");
    return static_cast<double>(milliseconds) / 1e3;
  }

  Stream begin_capture() override {
    select();
    const cudaStream_t stream = capturing();
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    return stream;
  }
  std::unique_ptr<RuntimeGraph> end_capture() override {
    cudaGraph_t graph = nullptr;
    check(cudaStreamEndCapture(capturing(), &graph), "cudaStreamEndCapture");
    auto made = std::make_unique<Graph>();
    const cudaError_t status = cudaGraphInstantiate(&made->exec, graph, 0);
    cudaGraphDestroy(graph);
    check(status, "cudaGraphInstantiate");
    return made;
  }

 protected:
  void do_copy(void* to, const void* from, size_t bytes, Direction direction, Stream s) override {
    constexpr cudaMemcpyKind kKinds[] = {cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice};
    select();
    check(cudaMemcpyAsync(to, from, bytes, kKinds[static_cast<int>(direction)], static_cast<cudaStream_t>(s)),
          "a copy");
    if (direction == Direction::kToDevice && may_be_read_later(from, static_cast<cudaStream_t>(s))) do_wait(s);
  }
  // Copies go by themselves where the one device may read the other's memory, and otherwise through the host, by CUDA.
  bool is_peer(const Runtime& other) const override {
    return &other != this && dynamic_cast<const CudaRuntime*>(&other) != nullptr;
  }
  void do_copy_from(void* to, Runtime& source, const void* from, size_t bytes, Stream s) override {
    select();
    const int peer = source.properties().ordinal;
    if (asked_.insert(peer).second) {
      int can = 0;
      check(cudaDeviceCanAccessPeer(&can, properties().ordinal, peer), "cudaDeviceCanAccessPeer");
      if (can && cudaDeviceEnablePeerAccess(peer, 0) != cudaSuccess) cudaGetLastError();  // the program itself did
    }
    check(cudaMemcpyPeerAsync(to, properties().ordinal, from, peer, bytes, static_cast<cudaStream_t>(s)),
          "a copy from another device");
  }
  void do_launch(const KernelCall& c, Stream s) override {
    select();
    void* arguments[] = {const_cast<void*>(c.arguments)};
    check(cudaLaunchKernel(c.kernel, {c.blocks.x, c.blocks.y, c.blocks.z}, {c.threads.x, c.threads.y, c.threads.z},
                           arguments, 0, static_cast<cudaStream_t>(s)),
          c.work);
  }
  void do_wait(Stream s) override { check(cudaStreamSynchronize(static_cast<cudaStream_t>(s)), "work on the device"); }
  void do_wait_for(const RuntimeEvent& e) override { check(cudaEventSynchronize(event_of(e)), "work on the device"); }
  void do_replay(const RuntimeGraph& g, Stream s) override {
    select();
    check(cudaGraphLaunch(static_cast<const Graph&>(g).exec, static_cast<cudaStream_t>(s)), "cudaGraphLaunch");
  }

 private:
  // CUDA has a current device a thread, which a program's own code may have changed.
  void select() const {
    int current = -1;
    if (cudaGetDevice(&current) == cudaSuccess && current == properties().ordinal) [[likely]]
      return;
    check(cudaSetDevice(properties().ordinal), "cudaSetDevice");
  }
  // Where the device reads the host's own pages, a copy of them may go on after the call. Elsewhere CUDA has copied
  // them to memory of its own by then.
  bool may_be_read_later(const void* host, cudaStream_t s) const {
    if (!reads_host_pages_) [[likely]]
      return false;
    cudaPointerAttributes a;
    check(cudaPointerGetAttributes(&a, host), "cudaPointerGetAttributes");
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    check(cudaStreamIsCapturing(s, &capture), "cudaStreamIsCapturing");
    return a.type == cudaMemoryTypeUnregistered && capture == cudaStreamCaptureStatusNone;
  }
  [[gnu::noinline, gnu::cold]] void open() {
    const std::lock_guard lock(opening_);
    select();
    int reads = 0;
    check(cudaDeviceGetAttribute(&reads, cudaDevAttrPageableMemoryAccess, properties().ordinal),
          "cudaDeviceGetAttribute");
    reads_host_pages_ = reads != 0;
    for (std::atomic<void*>* s : {&stream_, &copy_stream_}) {
      cudaStream_t made = nullptr;
      if (!*s) check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "cudaStreamCreate");
      if (made) *s = made;
    }
  }
  // A thread's own: a stream takes one capture at a time.
  struct Capturing {
    cudaStream_t stream = nullptr;
    ~Capturing() {
      if (stream) cudaStreamDestroy(stream);
    }
  };
  cudaStream_t capturing() {
    return capturing_
        .get([] {
          auto made = std::make_unique<Capturing>();
          check(cudaStreamCreateWithFlags(&made->stream, cudaStreamNonBlocking), "cudaStreamCreate");
          return made;
        })
        .stream;
  }
  std::mutex opening_;
  std::atomic<void*> stream_{nullptr}, copy_stream_{nullptr};
  std::atomic<bool> reads_host_pages_{false};
  std::set<int> asked_;  // peers, whether this device reaches them; one copy at a time comes from one
  plumb::detail::PerThread<Capturing> capturing_;
};

}  // namespace
}  // namespace plumb::cuda

namespace plumb::detail {

const char plumb_cuda_kernels = 0;

std::vector<std::string> vendor_versions() {
  return {"cuDNN " + cuda::cudnn_version(), "cuBLASLt " + cuda::cublaslt_version()};
}

std::vector<std::unique_ptr<Runtime>> make_runtimes(std::string& why_none) {
  std::vector<std::unique_ptr<Runtime>> all;
  cuda::Found found;
  int count = 0;
  found.status = cudaGetDeviceCount(&count);
  found.status_text = cudaGetErrorString(static_cast<cudaError_t>(found.status));
  cudaGetLastError();
  cudaDriverGetVersion(&found.driver);
  cudaRuntimeGetVersion(&found.runtime);
  found.visible = std::getenv("CUDA_VISIBLE_DEVICES");
  found.oldest = cuda::kOldestCapability;
  for (int i = 0; found.status == cudaSuccess && i < count; ++i) {
    cudaDeviceProp p{};
    if (cudaGetDeviceProperties(&p, i) != cudaSuccess) continue;
    const DeviceProperties properties{.name = p.name,
                                      .capability = p.major * 10 + p.minor,
                                      .multiprocessors = p.multiProcessorCount,
                                      .memory_bytes = p.totalGlobalMem,
                                      .ordinal = i,
                                      .cache_bytes = static_cast<size_t>(std::max(0, p.l2CacheSize))};
    if (properties.capability >= cuda::kOldestCapability) {
      all.push_back(std::make_unique<cuda::CudaRuntime>(properties));
    } else {
      found.too_old = properties;
    }
  }
  if (all.empty()) why_none = cuda::why_no_device(found);
  return all;
}

}  // namespace plumb::detail
