// A device whose kernels run on the host, at once, when they are launched: for checking, and not for speed.
#include "kernels/cuda/emulator/runtime.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

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

std::atomic<bool> is_hidden{false};

// The pages of all blocks, which the host reaches only while the device works if they are hidden.
class Pages {
 public:
  void add(char* begin, size_t bytes) {
    const std::lock_guard lock(mutex_);
    blocks_[begin] = bytes;
    if (!are_open_) mprotect(begin, bytes, PROT_NONE);
  }
  /// From now on the caller's.
  void take(char* begin) {
    const std::lock_guard lock(mutex_);
    const auto block = blocks_.find(begin);
    if (!are_open_) mprotect(begin, block->second, PROT_READ | PROT_WRITE);
    blocks_.erase(block);
  }
  void begin_work() {
    const std::lock_guard lock(mutex_);
    ++working_;
    if (!are_open_) protect(PROT_READ | PROT_WRITE);
    are_open_ = true;
  }
  void end_work() {
    const std::lock_guard lock(mutex_);
    if (--working_ > 0 || !is_hidden) return;
    protect(PROT_NONE);
    are_open_ = false;
  }

 private:
  void protect(int how) {
    for (const auto& [begin, bytes] : blocks_) mprotect(begin, bytes, how);
  }
  std::mutex mutex_;
  std::map<char*, size_t> blocks_;
  int working_ = 0;  // threads that launch or copy
  bool are_open_ = true;
};

// The device works while it lives.
class Work {
 public:
  explicit Work(Pages& p) : pages_(p) { pages_.begin_work(); }
  ~Work() { pages_.end_work(); }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

 private:
  Pages& pages_;
};

class EmulatedRuntime final : public Runtime {
 public:
  explicit EmulatedRuntime(int multiprocessors) : Runtime({"emulated", 90, multiprocessors, size_t{16} << 30, ""}) {}

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
    pages_.add(memory + kPage, pages);
    return block;
  }
  void release(void* block, size_t bytes) noexcept override {
    const size_t pages = pages_of(bytes);
    char* const begin = static_cast<char*>(block) + aligned(bytes) - pages;
    pages_.take(begin);
    const auto* const end = static_cast<unsigned char*>(block) + aligned(bytes);
    for (const unsigned char* p = static_cast<unsigned char*>(block) + bytes; p < end; ++p)
      if (*p != kUnwritten) was_overrun_ = true;
    munmap(begin - kPage, pages + 2 * kPage);
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
    std::unique_ptr<Graph>& graph = capturing();
    graph = std::make_unique<Graph>();
    return graph.get();
  }
  std::unique_ptr<RuntimeGraph> end_capture() override { return std::move(capturing()); }

 protected:
  void do_copy(void* to, const void* from, size_t bytes, Direction, Stream s) override {
    if (!s) {
      const Work work(pages_);
      std::memcpy(to, from, bytes);
      return;
    }
    Node& n = static_cast<Graph*>(s)->nodes.emplace_back();
    n.to = to, n.from = from, n.bytes = bytes;
  }
  void do_launch(const KernelCall& call, Stream s) override {
    if (!s) {
      const Work work(pages_);
      return run_threads(call, call.arguments);
    }
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
    const Work work(pages_);
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
  Pages pages_;
  std::unique_ptr<Graph>& capturing() {
    return capturing_.get([] { return std::make_unique<std::unique_ptr<Graph>>(); });
  }
  plumb::detail::PerThread<std::unique_ptr<Graph>> capturing_;  // what the thread captures
  std::atomic<bool> was_overrun_{false};
};

}  // namespace

void hide_memory(bool hidden) { is_hidden = hidden; }

std::unique_ptr<Runtime> make_runtime(int multiprocessors) {
  return std::make_unique<EmulatedRuntime>(multiprocessors);
}

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
