// The two streams of the emulated device: what is asked of them, and when it is done.
#pragma once

#include <chrono>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "core/runtime.h"
#include "kernels/cuda/emulator/runtime.h"

namespace plumb::emulator {

class Streams;

/// How often an event was recorded, and how many of these its stream has passed. What is pending may outlive the event.
struct Point {
  Streams* streams = nullptr;  // of the last record
  int64_t recorded = 0, passed = 0;
  std::chrono::steady_clock::time_point at;
};
struct Event final : RuntimeEvent {
  std::shared_ptr<Point> point = std::make_shared<Point>();
  const Runtime* recorded_by = nullptr;
};

/// One thing that is asked of a stream, with all that it needs: it may be done long after it was asked for.
struct Task {
  KernelCall call{};  // a launch, if it has a kernel
  std::vector<std::max_align_t> arguments;
  void* to = nullptr;  // a copy
  const void* from = nullptr;
  size_t bytes = 0;
  std::vector<char> taken;                          // what was to be copied, if it was read at once
  std::shared_ptr<const std::vector<Task>> replay;  // a graph
  std::shared_ptr<Point> record, follow;
  int64_t number = 0;  // of the point's records, the one that is meant
};

/// Does what is asked, each stream in its order. At its slowest it does nothing before somebody waits for it, so that
/// what does not wait for what it needs is seen.
class Streams {
 public:
  enum Which : uint8_t { kKernels, kCopies };
  /// `run` makes a launch, a copy or a replay.
  explicit Streams(Pace pace, std::function<void(const Task&)> run) : pace_(pace), run_(std::move(run)) {}
  Pace pace() const { return pace_; }
  void add(Which, Task);
  void record(Which, const std::shared_ptr<Point>&);
  void follow(Which, const std::shared_ptr<Point>&);
  /// Does all that was asked of a stream; throws what that threw.
  void finish(Which);
  /// Does what it takes for the point to be passed.
  static void finish(Point&);
  static bool is_done(const Point&);
  /// Both streams to their ends; what is thrown meanwhile the next wait throws.
  void drain() noexcept;

 private:
  static void reach(Point&, int64_t number);
  void do_next(Which);
  void rethrow();
  const Pace pace_;
  const std::function<void(const Task&)> run_;
  std::deque<Task> asked_[2];
  std::exception_ptr failed_;
};

}  // namespace plumb::emulator
