// A fake device that fails when a test tells it to.
#pragma once

#include <string>
#include <vector>

#include "core/runtime.h"

namespace plumb::test {

/// Its memory is host memory that is filled with zeros; copies work, launches do nothing. A script says what fails.
class ScriptedRuntime final : public Runtime {
 public:
  explicit ScriptedRuntime(DeviceProperties p = {"scripted", 90, 2, size_t{1} << 34}) : Runtime(std::move(p)) {}

  // The script.
  static constexpr int64_t kNever = int64_t{1} << 60;
  int64_t fail_from = kNever;  ///< from this allocation on (0 is the next), there is no memory
  int64_t fault_at = kNever;   ///< this launch (0 is the next) fails; the next wait reports it
  bool holds_events = false;   ///< events are done only after a wait for them
  bool fails_to_wait = false;  ///< for an event
  int64_t replays = kNever;    ///< of each graph that is captured from now on; one more fails
  /// The calls so far: "allocate", "launch plumb:softmax", "copy to_device", "wait", "wait_for".
  std::vector<std::string> log;
  int64_t live_blocks = 0;

  void* allocate(size_t bytes) override;
  void release(void* block, size_t bytes) noexcept override;
  void* allocate_pinned(size_t bytes) override { return allocate(bytes); }
  void release_pinned(void* block, size_t bytes) noexcept override { release(block, bytes); }
  std::unique_ptr<RuntimeEvent> make_event() override;
  void record(RuntimeEvent&, Stream) override;
  bool is_done(const RuntimeEvent&) override;
  double seconds_between(const RuntimeEvent&, const RuntimeEvent&) override { return 0; }
  Stream begin_capture() override { return nullptr; }
  std::unique_ptr<RuntimeGraph> end_capture() override;

 protected:
  void do_copy(void* to, const void* from, size_t bytes, Direction, Stream) override;
  void do_launch(const KernelCall&, Stream) override;
  void do_wait(Stream) override;
  void do_wait_for(const RuntimeEvent&) override;
  void do_replay(const RuntimeGraph&, Stream) override;

 private:
  std::string fault_;
};

/// A described device of this process; the same device at every call.
Device a_described_device();

}  // namespace plumb::test
