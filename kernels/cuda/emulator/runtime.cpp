// A device whose kernels run on the host, mostly at once, when they are launched: for checking, and not for speed.
#include "kernels/cuda/emulator/runtime.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "core/error.h"
#include "core/runtime.h"
#include "kernels/cuda/emulator/streams.h"
#include "kernels/cuda/emulator/threads.h"
#include "kernels/cuda/emulator/unwritten.h"

namespace plumb::emulator {
namespace {

constexpr size_t kPage = 4096;

const std::shared_ptr<Point>& point_of(const RuntimeEvent& e) { return static_cast<const Event&>(e).point; }

// What a capture keeps: launches with the arguments that they had, and copies.
struct Graph final : RuntimeGraph {
  std::shared_ptr<std::vector<Task>> tasks = std::make_shared<std::vector<Task>>();
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

// Of all devices, for one may read another's.
Pages& device_pages() {
  static Pages* all = new Pages;
  return *all;
}

class EmulatedRuntime final : public Runtime {
 public:
  EmulatedRuntime(int multiprocessors, Pace pace)
      : Runtime({"emulated", 90, multiprocessors, size_t{16} << 30, ""}), streams_(pace, &EmulatedRuntime::run) {}

  // Every block ends where a page begins that nobody may touch, but for what alignment takes; that, and what is left of
  // its first page, is looked at when the block is given back. One that works late keeps blocks, as a GPU does: there
  // may be work on them.
  bool keeps_blocks() const override { return streams_.pace() != Pace::kAtOnce; }
  void* allocate(size_t bytes) override {
    const size_t pages = pages_of(bytes);
    auto* const memory = static_cast<char*>(
        mmap(nullptr, pages + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (memory == MAP_FAILED) return nullptr;
    if (mprotect(memory + kPage, pages, PROT_READ | PROT_WRITE) != 0) {
      munmap(memory, pages + 2 * kPage);
      return nullptr;
    }
    madvise(memory + kPage, pages, MADV_HUGEPAGE);  // of large ones there are fewer entries to hide at each launch
    std::memset(memory + kPage, kUnwritten, pages);
    device_pages().add(memory + kPage, pages);
    return memory + kPage + pages - aligned(bytes);
  }
  void release(void* block, size_t bytes) noexcept override {
    streams_.drain();
    const size_t pages = pages_of(bytes);
    char* const begin = static_cast<char*>(block) + aligned(bytes) - pages;
    device_pages().take(begin);
    const size_t before = pages - aligned(bytes);
    if (!is_unwritten(begin, before) || !is_unwritten(begin + before + bytes, aligned(bytes) - bytes)) {
      // At once, for most processes wait for the device no more.
      std::fprintf(stderr, "emulator: a kernel wrote beside a block of memory of %zu bytes\n", bytes);
      std::abort();
    }
    munmap(begin - kPage, pages + 2 * kPage);
  }
  void* allocate_pinned(size_t bytes) override {
    void* const block = std::malloc(bytes);
    const std::lock_guard lock(pinned_mutex_);
    if (block) pinned_[static_cast<const char*>(block)] = bytes;
    return block;
  }
  void release_pinned(void* block, size_t) noexcept override {
    streams_.drain();
    {
      const std::lock_guard lock(pinned_mutex_);
      pinned_.erase(static_cast<const char*>(block));
    }
    std::free(block);
  }

  Stream copy_stream() override { return &streams_; }
  std::unique_ptr<RuntimeEvent> make_event() override { return std::make_unique<Event>(); }
  void record(RuntimeEvent& e, Stream s) override {
    static_cast<Event&>(e).recorded_by = this;
    streams_.record(which(s), point_of(e));
  }
  void follow(Stream s, const RuntimeEvent& e) override { streams_.follow(which(s), point_of(e)); }
  bool is_done(const RuntimeEvent& e) override { return Streams::is_done(*point_of(e)); }
  double seconds_between(const RuntimeEvent& from, const RuntimeEvent& to) override {
    for (const RuntimeEvent* e : {&from, &to}) {
      PLUMB_CHECK(static_cast<const Event*>(e)->recorded_by == this, "seconds_between: an event of another device");
      Streams::finish(*point_of(*e));
    }
    return std::chrono::duration<double>(point_of(to)->at - point_of(from)->at).count();
  }

  Stream begin_capture() override {
    std::unique_ptr<Graph>& graph = capturing();
    graph = std::make_unique<Graph>();
    return graph.get();
  }
  std::unique_ptr<RuntimeGraph> end_capture() override { return std::move(capturing()); }

 protected:
  void do_copy(void* to, const void* from, size_t bytes, Direction direction, Stream s) override {
    Task t;
    t.to = to, t.from = from, t.bytes = bytes;
    if (is_captured(s)) return static_cast<Graph*>(s)->tasks->push_back(std::move(t));
    if (direction == Direction::kToDevice && streams_.pace() != Pace::kAtOnce &&
        !is_pinned(from)) {  // it is read before this returns
      t.taken.assign(static_cast<const char*>(from), static_cast<const char*>(from) + bytes);
      t.from = nullptr;
    }
    streams_.add(which(s), std::move(t));
    if (direction == Direction::kToHost && !is_pinned(to)) streams_.finish(which(s));
  }
  bool is_peer(const Runtime& other) const override {
    return &other != this && dynamic_cast<const EmulatedRuntime*>(&other) != nullptr;
  }
  void do_copy_from(void* to, Runtime&, const void* from, size_t bytes, Stream s) override {
    Task t;
    t.to = to, t.from = from, t.bytes = bytes;
    streams_.add(which(s), std::move(t));
  }
  void do_launch(const KernelCall& call, Stream s) override {
    if (!is_captured(s) && streams_.pace() == Pace::kAtOnce) {
      const Work work(device_pages());
      return run_threads(call, call.arguments);
    }
    Task t;
    t.call = call;
    t.arguments.resize((call.argument_bytes + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t));
    std::memcpy(t.arguments.data(), call.arguments, call.argument_bytes);
    if (is_captured(s)) return static_cast<Graph*>(s)->tasks->push_back(std::move(t));
    streams_.add(which(s), std::move(t));
  }
  void do_wait(Stream s) override { streams_.finish(which(s)); }
  void do_wait_for(const RuntimeEvent& e) override { Streams::finish(*point_of(e)); }
  void do_replay(const RuntimeGraph& graph, Stream s) override {
    Task t;
    t.replay = static_cast<const Graph&>(graph).tasks;
    streams_.add(which(s), std::move(t));
  }

 private:
  static size_t aligned(size_t bytes) { return std::max(plumb::detail::aligned(bytes), kAlignment); }
  static size_t pages_of(size_t bytes) { return (aligned(bytes) + kPage - 1) / kPage * kPage; }
  static void run(const Task& t) {
    const Work work(device_pages());
    if (t.call.kernel) {
      run_threads(t.call, t.arguments.data());
    } else if (t.replay) {
      for (const Task& of_graph : *t.replay) run(of_graph);
    } else if (t.bytes > 0) {
      std::memcpy(t.to, t.from ? t.from : t.taken.data(), t.bytes);
    }
  }
  // Streams are nothing, the streams, or a graph that is being captured.
  bool is_captured(Stream s) { return s && s != &streams_; }
  Streams::Which which(Stream s) { return s == &streams_ ? Streams::kCopies : Streams::kKernels; }
  bool is_pinned(const void* memory) {
    const std::lock_guard lock(pinned_mutex_);
    const auto after = pinned_.upper_bound(static_cast<const char*>(memory));
    return after != pinned_.begin() && std::prev(after)->first + std::prev(after)->second > memory;
  }
  std::unique_ptr<Graph>& capturing() {
    return capturing_.get([] { return std::make_unique<std::unique_ptr<Graph>>(); });
  }
  plumb::detail::PerThread<std::unique_ptr<Graph>> capturing_;  // what the thread captures
  std::mutex pinned_mutex_;
  std::map<const char*, size_t> pinned_;
  Streams streams_;
};

}  // namespace

void hide_memory(bool hidden) { is_hidden = hidden; }

std::unique_ptr<Runtime> make_runtime(int multiprocessors, Pace pace) {
  return std::make_unique<EmulatedRuntime>(multiprocessors, pace);
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
