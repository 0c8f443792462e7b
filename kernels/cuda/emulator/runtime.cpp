// A device whose kernels run on the host, at once, when they are launched: for checking, and not for speed.
#include "kernels/cuda/emulator/runtime.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "core/error.h"
#include "core/runtime.h"
#include "kernels/cuda/emulator/threads.h"

namespace plumb::emulator {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kPage = 4096;
constexpr unsigned char kUnwritten = 0xff;  // as floats these are NaNs: what reads before it writes is seen

struct Event final : RuntimeEvent {
  Clock::time_point at;
};
Clock::time_point time_of(const RuntimeEvent& e) { return static_cast<const Event&>(e).at; }

// What a capture keeps: launches with the arguments that they had, and copies.
struct Node {
  KernelCall call{};
  std::vector<std::max_align_t> arguments;
  void* to = nullptr;
  const void* from = nullptr;
  size_t bytes = 0;
};
struct Graph final : RuntimeGraph {
  std::vector<Node> nodes;
};

class EmulatedRuntime final : public Runtime {
 public:
  EmulatedRuntime() : Runtime({"emulated", 90, 2, size_t{16} << 30, ""}) {}

  // Every block ends where a page begins that nobody may touch, but for what alignment takes, which is looked at when
  // the block is given back.
  bool keeps_blocks() const override { return false; }
  void* allocate(size_t bytes) override {
    const size_t pages = pages_of(bytes);
    auto* const memory = static_cast<char*>(
        mmap(nullptr, pages + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (memory == MAP_FAILED) return nullptr;
    if (mprotect(memory + kPage, pages, PROT_READ | PROT_WRITE) != 0) {
      munmap(memory, pages + 2 * kPage);
      return nullptr;
    }
    char* const block = memory + kPage + pages - aligned(bytes);
    std::memset(block, kUnwritten, aligned(bytes));
    return block;
  }
  void release(void* block, size_t bytes) noexcept override {
    const auto* const end = static_cast<unsigned char*>(block) + aligned(bytes);
    for (const unsigned char* p = static_cast<unsigned char*>(block) + bytes; p < end; ++p)
      if (*p != kUnwritten) was_overrun_ = true;
    const size_t pages = pages_of(bytes);
    munmap(static_cast<char*>(block) + aligned(bytes) - pages - kPage, pages + 2 * kPage);
  }
  void* allocate_pinned(size_t bytes) override { return std::malloc(bytes); }
  void release_pinned(void* block, size_t) noexcept override { std::free(block); }

  std::unique_ptr<RuntimeEvent> make_event() override { return std::make_unique<Event>(); }
  void record(RuntimeEvent& e, Stream) override { static_cast<Event&>(e).at = Clock::now(); }
  bool is_done(const RuntimeEvent&) override { return true; }
  double seconds_between(const RuntimeEvent& from, const RuntimeEvent& to) override {
    return std::chrono::duration<double>(time_of(to) - time_of(from)).count();
  }

  Stream begin_capture() override {
    capture_ = std::make_unique<Graph>();
    return capture_.get();
  }
  std::unique_ptr<RuntimeGraph> end_capture() override { return std::move(capture_); }

 protected:
  void do_copy(void* to, const void* from, size_t bytes, Direction, Stream s) override {
    if (!s) {
      std::memcpy(to, from, bytes);
      return;
    }
    Node& n = static_cast<Graph*>(s)->nodes.emplace_back();
    n.to = to, n.from = from, n.bytes = bytes;
  }
  void do_launch(const KernelCall& call, Stream s) override {
    if (!s) return run_threads(call, call.arguments);
    Node& n = static_cast<Graph*>(s)->nodes.emplace_back();
    n.call = call;
    n.arguments.resize((call.argument_bytes + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t));
    std::memcpy(n.arguments.data(), call.arguments, call.argument_bytes);
  }
  void do_wait(Stream) override {
    PLUMB_CHECK(!was_overrun_.exchange(false), "emulator: a kernel wrote beyond the end of a block of memory");
  }
  void do_wait_for(const RuntimeEvent&) override {}
  void do_replay(const RuntimeGraph& graph, Stream) override {
    for (const Node& n : static_cast<const Graph&>(graph).nodes) {
      if (n.call.kernel) {
        run_threads(n.call, n.arguments.data());
      } else {
        std::memcpy(n.to, n.from, n.bytes);
      }
    }
  }

 private:
  static size_t aligned(size_t bytes) { return std::max(plumb::detail::aligned(bytes), kAlignment); }
  static size_t pages_of(size_t bytes) { return (aligned(bytes) + kPage - 1) / kPage * kPage; }
  std::unique_ptr<Graph> capture_;
  std::atomic<bool> was_overrun_{false};
};

}  // namespace

std::unique_ptr<Runtime> make_runtime() { return std::make_unique<EmulatedRuntime>(); }

}  // namespace plumb::emulator

namespace plumb::detail {

const char plumb_cuda_kernels = 0;

std::vector<std::string> vendor_versions() { return {}; }

std::vector<std::unique_ptr<Runtime>> make_runtimes(std::string&) {
  std::vector<std::unique_ptr<Runtime>> all;
  all.push_back(emulator::make_runtime());
  return all;
}

}  // namespace plumb::detail
