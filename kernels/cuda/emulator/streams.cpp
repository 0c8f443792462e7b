#include "kernels/cuda/emulator/streams.h"

#include <algorithm>
#include <utility>

namespace plumb::emulator {
namespace {

// One for all devices, since events lead from one to the other; work may ask for more work.
std::recursive_mutex& mutex() {
  static std::recursive_mutex* m = new std::recursive_mutex;
  return *m;
}

}  // namespace

void Streams::add(Which which, Task task) {
  if (pace_ == Pace::kAtOnce) return run_(task);  // any number of threads at a time, as nothing is ever pending
  const std::lock_guard lock(mutex());
  asked_[which].push_back(std::move(task));
  if (pace_ == Pace::kCopiesFirst && which == kCopies) finish(kCopies);
}

void Streams::record(Which which, const std::shared_ptr<Point>& p) {
  const std::lock_guard lock(mutex());
  p->streams = this;
  ++p->recorded;
  Task t;
  t.record = p;
  t.number = p->recorded;
  if (pace_ != Pace::kAtOnce) return add(which, std::move(t));
  p->passed = p->recorded;
  p->at = std::chrono::steady_clock::now();
}

void Streams::follow(Which which, const std::shared_ptr<Point>& p) {
  if (pace_ == Pace::kAtOnce) return finish(*p);  // which may be a slower device's
  const std::lock_guard lock(mutex());
  Task t;
  t.follow = p;
  t.number = p->recorded;
  add(which, std::move(t));
}

// As far as the point's record of this number, and no farther.
void Streams::reach(Point& p, int64_t number) {
  const auto is_it = [&](const Task& t) { return t.record.get() == &p && t.number == number; };
  while (p.streams && p.passed < number)
    p.streams->do_next(std::ranges::any_of(p.streams->asked_[kKernels], is_it) ? kKernels : kCopies);
}

void Streams::do_next(Which which) {
  const Task task = std::move(asked_[which].front());
  asked_[which].pop_front();
  if (task.record) {
    task.record->passed = std::max(task.record->passed, task.number);
    task.record->at = std::chrono::steady_clock::now();
  } else if (task.follow) {
    reach(*task.follow, task.number);
  } else {
    run_(task);
  }
}

void Streams::finish(Which which) {
  const std::lock_guard lock(mutex());
  while (!asked_[which].empty()) do_next(which);
  rethrow();
}

void Streams::finish(Point& p) {
  const std::lock_guard lock(mutex());
  reach(p, p.recorded);
  if (p.streams) p.streams->rethrow();
}

bool Streams::is_done(const Point& p) {
  const std::lock_guard lock(mutex());
  return p.passed == p.recorded;
}

void Streams::drain() noexcept {
  const std::lock_guard lock(mutex());
  for (const Which which : {kKernels, kCopies}) {
    while (!asked_[which].empty()) {
      try {
        do_next(which);
      } catch (...) {
        if (!failed_) failed_ = std::current_exception();
      }
    }
  }
}

void Streams::rethrow() {
  if (failed_) std::rethrow_exception(std::exchange(failed_, nullptr));
}

}  // namespace plumb::emulator
