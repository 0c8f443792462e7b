#include "core/runtime.h"

#include <cstring>
#include <utility>

#include "core/block.h"
#include "core/error.h"

namespace plumb {
namespace {

constexpr size_t kMost = 256;  // devices

struct Table {
  std::mutex mutex;
  bool has_looked = false;
  std::string why_none = "this build has no CUDA kernels";
  std::vector<std::unique_ptr<Runtime>> all;  // by index; never freed: tensors outlive statics
};
Table& table() {
  static Table* t = new Table;
  return *t;
}
constinit std::atomic<Runtime*> known[kMost] = {};  // what is in the table, for the warm path

// Under the lock.
void look(Table& t) {
  if (t.has_looked || !detail::has_cuda_kernels()) return;
  t.why_none.clear();
  t.all = detail::make_runtimes(t.why_none);
  for (size_t i = 0; i < t.all.size(); ++i) known[i] = t.all[i].get();
  t.has_looked = true;
}

[[gnu::noinline, gnu::cold]] Runtime& find(Device d) {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  look(t);
  PLUMB_CHECK(!d.is_cpu(), "{} is the host, which has no runtime", d);
  PLUMB_CHECK(!t.all.empty(), "\"{}\": {}; use cpu", d, t.why_none);
  PLUMB_CHECK(d.index < t.all.size(), "\"{}\": this process has {} such device{}; use cuda:0{}", d, t.all.size(),
              t.all.size() == 1 ? "" : "s", t.all.size() == 1 ? "" : " to cuda:" + std::to_string(t.all.size() - 1));
  return *t.all[d.index];
}

}  // namespace

Runtime::Runtime(DeviceProperties p) : properties_(std::move(p)), memory_(this) {}
Runtime::~Runtime() = default;

void Runtime::copy(void* to, const void* from, size_t bytes, Direction direction, Stream stream) {
  if (bytes == 0) return;
  const auto copy_now = [&] { do_copy(to, from, bytes, direction, stream); };
  if (stream != this->stream() && stream != copy_stream()) return copy_now();  // captured, and no event is
  counted(direction == Direction::kToDevice ? counts_.to_device
          : direction == Direction::kToHost ? counts_.to_host
                                            : counts_.within,
          bytes, stream, copy_now);
}

// The copy itself goes without the lock: one to the host's plain memory may take until all work before it is done, and
// meanwhile others copy on streams of their own.
template <class Copy>
void Runtime::counted(Transfers& sum, size_t bytes, Stream stream, const Copy& copy) {
  Timed mine;
  size_t place = 0;
  {
    const std::lock_guard lock(mutex_);
    place = next_timed_++ % timed_.size();
    Timed& earlier = timed_[place];
    if (earlier.seconds && is_done(*earlier.to)) take_time(earlier);  // else nothing waits for a clock
    mine = std::exchange(earlier, Timed{});
  }
  if (!mine.from) mine.from = make_event(), mine.to = make_event();
  record(*mine.from, stream);
  copy();
  record(*mine.to, stream);
  mine.seconds = &sum.seconds;
  const std::lock_guard lock(mutex_);
  ++sum.count;
  sum.bytes += static_cast<int64_t>(bytes);
  if (!timed_[place].from) timed_[place] = std::move(mine);  // or so many have come since that the place was taken
}

bool Runtime::copy_from(void* to, Runtime& source, const void* from, size_t bytes) {
  if (!is_peer(source)) return false;
  if (bytes == 0) return true;
  static std::mutex of_peers;  // events are recorded and followed in pairs
  const std::lock_guard one_at_a_time(of_peers);
  const auto pass = [](Runtime& first, Runtime& second) {
    if (!first.handed_over_) first.handed_over_ = first.make_event();
    first.record(*first.handed_over_, first.stream());
    second.follow(second.stream(), *first.handed_over_);
  };
  pass(source, *this);
  counted(counts_.from_peer, bytes, stream(), [&] { do_copy_from(to, source, from, bytes, stream()); });
  pass(*this, source);  // which may then write over what was read
  return true;
}

void Runtime::take_time(Timed& t) {
  if (double* seconds = std::exchange(t.seconds, nullptr)) *seconds += seconds_between(*t.from, *t.to);
}

void Runtime::launch(const KernelCall& call, Stream stream) {
  count_launch();
  do_launch(call, stream);
}

void Runtime::wait(Stream stream) {
  waits_.fetch_add(1, std::memory_order_relaxed);
  do_wait(stream);
  throw_fault();
}

void Runtime::wait_for(const RuntimeEvent& event) {
  waits_.fetch_add(1, std::memory_order_relaxed);
  do_wait_for(event);
}

void Runtime::throw_fault() {
  Fault found;
  {
    const std::lock_guard lock(mutex_);
    if (!fault_ || fault_->sentence == 0) return;
    found = std::exchange(*fault_, Fault{});
  }
  std::string text = reinterpret_cast<const char*>(found.sentence);
  size_t at = 0;
  for (const int64_t v : found.values) {
    at = text.find("{}", at);
    if (at == std::string::npos) break;
    text.replace(at, 2, std::to_string(v));
  }
  throw Error(text);
}

void Runtime::replay(const RuntimeGraph& graph, Stream stream) {
  {
    const std::lock_guard lock(mutex_);
    ++counts_.replays;
  }
  do_replay(graph, stream);
}

// Memory that is put back may be handed out at once: what is queued on the stream is done before what comes next.
struct Runtime::Workspace {
  Allocator& memory;
  void* block = nullptr;
  size_t bytes = 0;
  explicit Workspace(Allocator& m) : memory(m) {}
  ~Workspace() { clear(); }
  void clear() {
    if (block) memory.put(std::exchange(block, nullptr), std::exchange(bytes, 0), MemoryClass::kWorkspace);
  }
};

Runtime::Workspace& Runtime::workspace_of_thread() {
  return workspaces_.get([&] { return std::make_unique<Workspace>(memory_); });
}

void* Runtime::workspace(size_t bytes) {
  Workspace& w = workspace_of_thread();
  if (bytes > w.bytes) {
    w.clear();
    w.block = memory_.get(bytes, MemoryClass::kWorkspace);
    w.bytes = bytes;
  }
  return w.block;
}

void Runtime::release_idle_memory() {
  workspace_of_thread().clear();
  memory_.trim();
}

Fault* Runtime::fault() {
  const std::lock_guard lock(mutex_);
  if (!fault_) {
    void* const memory = allocate_pinned(sizeof(Fault));
    PLUMB_CHECK(memory, "{} has no memory of the host for {} bytes", properties_.name, sizeof(Fault));
    fault_ = new (memory) Fault;
  }
  return fault_;
}

DeviceCounts Runtime::counts(bool waits) {
  const std::lock_guard lock(mutex_);
  for (Timed& t : timed_) {
    if (t.seconds && (waits || is_done(*t.to))) take_time(t);
  }
  DeviceCounts now = counts_;
  now.launches = launches_.load(std::memory_order_relaxed);
  now.waits = waits_.load(std::memory_order_relaxed);
  return now;
}

Runtime& runtime_of(Device d) {
  Runtime* const r = d.is_cpu() ? nullptr : known[d.index].load(std::memory_order_acquire);
  return r ? *r : find(d);
}

std::vector<Device> devices() {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  look(t);
  std::vector<Device> all;
  for (size_t i = 0; i < t.all.size(); ++i) all.push_back({DeviceType::kCuda, static_cast<uint8_t>(i)});
  return all;
}

Device add_device(std::unique_ptr<Runtime> runtime) {
  PLUMB_CHECK(runtime, "add_device: there is no runtime");
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  look(t);
  PLUMB_CHECK(t.all.size() < kMost, "a process has at most {} devices", kMost);
  const auto index = static_cast<uint8_t>(t.all.size());
  t.all.push_back(std::move(runtime));
  known[index].store(t.all.back().get(), std::memory_order_release);
  return {DeviceType::kCuda, index};
}

Allocator& memory_of(Device d) { return d.is_cpu() ? cpu_memory() : runtime_of(d).memory(); }

void detail::copy_bytes(void* to, Device to_device, const void* from, Device from_device, size_t bytes) {
  using Direction = Runtime::Direction;
  if (bytes == 0) return;
  if (to_device.is_cpu() && from_device.is_cpu()) {
    std::memcpy(to, from, bytes);
  } else if (to_device == from_device || to_device.is_cpu() || from_device.is_cpu()) {
    Runtime& r = runtime_of(to_device.is_cpu() ? from_device : to_device);
    const Direction direction = to_device.is_cpu()     ? Direction::kToHost
                                : from_device.is_cpu() ? Direction::kToDevice
                                                       : Direction::kWithin;
    r.copy(to, from, bytes, direction, r.stream());
    if (to_device.is_cpu()) r.wait(r.stream());
  } else if (!runtime_of(to_device).copy_from(to, runtime_of(from_device), from, bytes)) {
    const Block between = block_of(bytes);
    copy_bytes(between.get(), {}, from, from_device, bytes);
    copy_bytes(to, to_device, between.get(), {}, bytes);
  }
}

}  // namespace plumb
