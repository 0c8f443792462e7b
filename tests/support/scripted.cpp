#include "tests/support/scripted.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/described.h"
#include "core/error.h"

namespace plumb::test {
namespace {

struct Event final : RuntimeEvent {
  mutable bool is_done = false;
};
struct Graph final : RuntimeGraph {
  explicit Graph(int64_t replays) : left(replays) {}
  mutable int64_t left;
};

}  // namespace

void* ScriptedRuntime::allocate(size_t bytes) {
  if (fail_from <= 0) return nullptr;
  if (fail_from != kNever) --fail_from;
  log.push_back("allocate");
  void* const block = std::aligned_alloc(kAlignment, plumb::detail::aligned(std::max<size_t>(1, bytes)));
  if (!block) return nullptr;
  std::memset(block, 0, bytes);
  ++live_blocks;
  return block;
}

void ScriptedRuntime::release(void* block, size_t) noexcept {
  std::free(block);
  --live_blocks;
}

std::unique_ptr<RuntimeEvent> ScriptedRuntime::make_event() { return std::make_unique<Event>(); }
void ScriptedRuntime::record(RuntimeEvent& e, Stream) { static_cast<Event&>(e).is_done = !holds_events; }
bool ScriptedRuntime::is_done(const RuntimeEvent& e) { return static_cast<const Event&>(e).is_done; }

std::unique_ptr<RuntimeGraph> ScriptedRuntime::end_capture() { return std::make_unique<Graph>(replays); }
void ScriptedRuntime::do_replay(const RuntimeGraph& g, Stream) {
  log.push_back("replay");
  PLUMB_CHECK(static_cast<const Graph&>(g).left-- > 0, "a replay fails");
}

void ScriptedRuntime::do_copy(void* to, const void* from, size_t bytes, Direction d, Stream) {
  log.push_back(d == Direction::kToDevice ? "copy to_device"
                : d == Direction::kToHost ? "copy to_host"
                                          : "copy within");
  std::memcpy(to, from, bytes);
}

void ScriptedRuntime::do_launch(const KernelCall& call, Stream) {
  log.push_back(std::string("launch ") + call.work);
  if (fault_at != kNever && fault_at-- == 0) {
    fault_ = call.work;
    fault_at = kNever;
  }
}

void ScriptedRuntime::do_wait(Stream) {
  log.push_back("wait");
  const std::string work = std::exchange(fault_, "");
  PLUMB_CHECK(work.empty(), "{}: an illegal memory access was encountered", work);
}

void ScriptedRuntime::do_wait_for(const RuntimeEvent& e) {
  log.push_back("wait_for");
  PLUMB_CHECK(!fails_to_wait, "a wait fails");
  static_cast<const Event&>(e).is_done = true;
}

Device a_described_device() {
  static const Device d = describe_device(
      R"({"deviceName": "described", "deviceVer": 900, "multiProcessorCount": 132, "totalGlobalMem": 150121545728})");
  return d;
}

}  // namespace plumb::test
