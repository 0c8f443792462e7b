#include "kernels/cuda/emulator/threads.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "kernels/cuda/emulator/block_memory.h"
#include "kernels/cuda/emulator/fibers.h"
#include "kernels/cuda/emulator/language.h"
#include "kernels/cuda/emulator/ready.h"

namespace plumb::emulator {
namespace {

constexpr unsigned kWarp = 32;
constexpr int64_t kBlocksApart = 4;  // that have no thread in common to ThreadSanitizer

// Runs threads that have not begun, one after another, until one of them must wait; then it is that one's.
struct Stack {
  explicit Stack(void (*begin)()) : fiber(begin) {}
  Fiber fiber;
  int waiting = -1;  // the thread that waits on it
};

struct Warp {
  uint64_t slots[2][kWarp];  // in turn: some lanes read what the last exchange gave while others begin the next
  uint32_t arrived = 0, mask = 0;
  int turn = 0;
  const void* where = nullptr;
};

struct Abandoned {};  // thrown through threads that wait when another has failed

// "…kFunction = plumb::{anonymous}::softmax_kernel<float>; …" -> "softmax_kernel<float>"
std::string function_name(std::string_view text) {
  if (const size_t at = text.find("kFunction = "); at != text.npos) text.remove_prefix(at + 12);
  text = text.substr(0, text.find_first_of(";]"));
  const size_t arguments = text.find('<');
  if (const size_t colon = text.rfind("::", arguments); colon != text.npos) text.remove_prefix(colon + 2);
  return std::string(text);
}

class Scheduler {
 public:
  void run(const KernelCall& call, const void* arguments) {
    const std::lock_guard lock(mutex_);
    call_ = &call;
    arguments_ = arguments;
    self.threads = {call.threads.x, call.threads.y, call.threads.z};
    self.blocks = {call.blocks.x, call.blocks.y, call.blocks.z};
    const int64_t threads = int64_t{call.threads.x} * call.threads.y * call.threads.z;
    PLUMB_CHECK(threads >= 1 && threads <= kMostThreads, "emulator: {} has blocks of {} threads; use 1 to {}",
                function_name(call.name), threads, kMostThreads);
    PLUMB_CHECK(call.blocks.y <= 65535 && call.blocks.z <= 65535 && call.blocks.x <= 0x7fffffffu,
                "emulator: {} has a grid of {} x {} x {} blocks", function_name(call.name), call.blocks.x,
                call.blocks.y, call.blocks.z);
    count_ = static_cast<int>(threads);
    const int64_t blocks = int64_t{call.blocks.x} * call.blocks.y * call.blocks.z;
    ran_[call.name].insert({call.blocks.x, call.blocks.y, call.blocks.z});
    set_up(blocks);
    for (int64_t i = 0; i < blocks; ++i) run_block(blocks_.empty() ? i : blocks_[static_cast<size_t>(i)]);
    tsan::acquire(&end_order_);
    if (const size_t bytes = std::exchange(beside_, 0))
      fail("emulator: {} touches {} bytes, of which some belong to no buffer", function_name(call.name), bytes);
  }

  // ---- on the stack of a thread

  void wait_for_block(const void* where) {
    check_place(at_barrier_ > 0, barrier_, where);
    barrier_ = where;
    void* const order = memory_.order(barrier_turn_);
    tsan::release(order);
    if (++at_barrier_ == count_) {
      at_barrier_ = 0;
      barrier_turn_ ^= 1;
      for (const int t : order_) {
        if (t != current_) ready_.add(t);
      }
    } else {
      suspend();
    }
    tsan::acquire(order);
  }

  const uint64_t* exchange(uint32_t mask, uint64_t mine, const void* where) {
    const size_t warp = static_cast<size_t>(current_) / kWarp;
    Warp& w = warps_[warp];
    check_place(w.arrived != 0, w.where, where);
    const bool is_meant = (mask >> self.lane & 1) && (w.arrived == 0 || w.mask == mask);
    if (!is_meant)
      fail("emulator: {}: the lanes of a warp exchange values under different masks", function_name(call_->name));
    w.where = where;
    w.mask = mask;
    const int turn = w.turn;
    w.slots[turn][self.lane] = mine;
    w.arrived |= 1u << self.lane;
    void* const order = memory_.order(2 + 2 * warp + static_cast<size_t>(turn));
    tsan::release(order);
    if (w.arrived == mask) {
      w.arrived = 0;
      w.turn ^= 1;
      const int first = current_ / static_cast<int>(kWarp) * static_cast<int>(kWarp);
      for (unsigned lane = 0; lane < kWarp; ++lane) {
        if (lane != self.lane && (mask >> lane & 1)) ready_.add(first + static_cast<int>(lane));
      }
    } else {
      suspend();
    }
    tsan::acquire(order);
    return w.slots[turn];
  }

  void* shared_memory(size_t bytes) {
    PLUMB_CHECK(bytes <= BlockMemory::kMost, "emulator: {} takes {} bytes of shared memory; there are {}",
                function_name(call_->name), bytes, BlockMemory::kMost);
    void* const memory = memory_.take(bytes);
    PLUMB_CHECK(memory_.bytes() == bytes, "emulator: {} has two structs of shared memory", function_name(call_->name));
    return memory;
  }

  void look_at(const void* begin, size_t bytes) noexcept {
    if (!beside_ && !may_access_(begin, bytes)) beside_ = bytes;
  }
  void watch(MayAccess may_access) {
    const std::lock_guard lock(mutex_);
    may_access_ = may_access;
    is_watched = may_access != nullptr;
  }

  static Scheduler& get() {
    static Scheduler* s = new Scheduler;
    return *s;
  }
  void set_order(Order o) {
    const std::lock_guard lock(mutex_);
    how_ = o;
  }
  Counts counts() {
    const std::lock_guard lock(mutex_);
    return {read_bytes, written_bytes};
  }
  std::map<std::string, Grids> functions_run() {
    const std::lock_guard lock(mutex_);
    std::map<std::string, Grids> all;
    for (const auto& [name, grids] : ran_) all[function_name(name)].insert(grids.begin(), grids.end());
    return all;
  }

 private:
  void set_up(int64_t blocks) {
    order_.resize(static_cast<size_t>(count_));
    std::iota(order_.begin(), order_.end(), 0);
    places_.clear();
    for (Index3 at; at.z < self.threads.z; ++at.z) {
      for (at.y = 0; at.y < self.threads.y; ++at.y) {
        for (at.x = 0; at.x < self.threads.x; ++at.x) places_.push_back(at);
      }
    }
    blocks_.clear();
    if (how_ == Order::kBackward || how_ == Order::kRandom) {
      blocks_.resize(static_cast<size_t>(blocks));
      std::iota(blocks_.begin(), blocks_.end(), int64_t{0});
    }
    if (how_ == Order::kBackward) {
      std::reverse(blocks_.begin(), blocks_.end());
      std::reverse(order_.begin(), order_.end());
    } else if (how_ == Order::kRandom) {
      std::shuffle(blocks_.begin(), blocks_.end(), random_);
      std::shuffle(order_.begin(), order_.end(), random_);
    }
    stack_of_.assign(static_cast<size_t>(count_), nullptr);
    beside_ = 0;
    memory_.begin_launch();
    host_tsan_ = tsan::current();
    const auto threads = static_cast<size_t>(count_ * std::min(blocks, kBlocksApart));
    while (tsan_.size() < threads) tsan_.push_back(tsan::create());
    // No memory is taken while threads run: ThreadSanitizer would see it.
    idle_.reserve(kMostThreads);
  }

  void run_block(int64_t block) {
    const Index3 n = self.blocks;
    self.block = {static_cast<unsigned>(block % n.x), static_cast<unsigned>(block / n.x % n.y),
                  static_cast<unsigned>(block / n.x / n.y)};
    for (Warp& w : warps_) w.arrived = 0;
    ready_.clear();
    fresh_ = done_ = at_barrier_ = 0;
    memory_.begin_block();
    turn_ += static_cast<size_t>(count_);  // to ThreadSanitizer its threads are others than those of the blocks before
    tsan::release(&launch_order_);
    while (done_ < count_ && !error_) {
      if (!ready_.empty()) {
        enter(take_ready());
        resume(*stack_of_[static_cast<size_t>(current_)]);
      } else if (fresh_ < count_) {
        resume(*free_stack());
      } else {
        error_ = std::make_exception_ptr(Error(message(
            "emulator: {}: {} of the {} threads of a block have ended while {} wait for them at a barrier, or in an "
            "exchange of their warp",
            function_name(call_->name), done_, count_, count_ - done_)));
      }
    }
    if (error_) {
      abandon();
      std::rethrow_exception(std::exchange(error_, nullptr));
    }
    PLUMB_CHECK(memory_.is_whole_beside(), "emulator: {} wrote outside of its shared memory",
                function_name(call_->name));
  }

  // Ends the threads that wait.
  void abandon() {
    for (int t = 0; t < count_; ++t) {
      Stack* const s = stack_of_[static_cast<size_t>(t)];
      if (!s || s->waiting != t) continue;
      enter(t);
      resume(*s);
    }
  }

  void check_place(bool is_set, const void* known, const void* where) const {
    PLUMB_CHECK(!is_set || known == where,
                "emulator: {}: threads wait for each other in different places of the source",
                function_name(call_->name));
  }

  void be(int thread) { tsan::become(tsan_[(static_cast<size_t>(thread) + turn_) % tsan_.size()]); }

  void enter(int thread) {
    current_ = thread;
    self.thread = places_[static_cast<size_t>(thread)];
    self.lane = static_cast<unsigned>(thread) % kWarp;
  }

  int take_ready() { return how_ == Order::kGreedy ? ready_.take_last() : ready_.take_first(); }

  Stack* free_stack() {
    if (idle_.empty()) idle_.push_back(new Stack(&Scheduler::begin));
    Stack* const s = idle_.back();
    idle_.pop_back();
    return s;
  }

  // From the host's stack to another, and back.
  void resume(Stack& s) {
    running_ = &s;
    if (s.waiting >= 0) be(s.waiting);
    host_.pass_to(s.fiber);
  }
  void leave(Stack& s) {
    tsan::become(host_tsan_);
    s.fiber.pass_to(host_);
  }

  // The current thread waits: the next one that is ready goes on, without the host's stack in between.
  void suspend() {
    Stack* const own = running_;
    own->waiting = current_;
    stack_of_[static_cast<size_t>(current_)] = own;
    if (!ready_.empty()) {
      enter(take_ready());
      running_ = stack_of_[static_cast<size_t>(current_)];
      be(current_);
      own->fiber.pass_to(running_->fiber);
    } else {
      leave(*own);
    }
    if (error_) throw Abandoned{};
  }

  // The life of a stack.
  [[noreturn]] static void begin() {
    Fiber::arrived();
    Scheduler& s = get();
    while (true) {
      Stack* const own = s.running_;
      own->waiting = -1;
      while (s.fresh_ < s.count_ && !s.error_) {
        const int thread = s.order_[static_cast<size_t>(s.fresh_++)];
        s.enter(thread);
        s.be(thread);
        s.run_thread();
        ++s.done_;
        if (own->waiting >= 0) break;  // others were waited for meanwhile: those that are ready come first
      }
      own->waiting = -1;
      s.idle_.push_back(own);
      s.leave(*own);
    }
  }

  void run_thread() {
    tsan::acquire(&launch_order_);
    try {
      call_->call(call_->kernel, arguments_);
    } catch (const Abandoned&) {
    } catch (...) {
      if (!error_) error_ = std::current_exception();
    }
    tsan::release(&end_order_);
  }

  std::mutex mutex_;
  Order how_ = Order::kForward;
  MayAccess may_access_ = nullptr;
  size_t beside_ = 0;                 // bytes of the launch's first access that may not be
  std::map<const char*, Grids> ran_;  // by their names, as literals
  std::mt19937 random_;

  const KernelCall* call_ = nullptr;
  const void* arguments_ = nullptr;
  std::vector<int64_t> blocks_;  // their order; empty: as they come
  std::vector<int> order_;       // of threads
  std::vector<Index3> places_;   // of threads, in their block
  int count_ = 0;                // of threads in a block

  int current_ = 0, fresh_ = 0, done_ = 0, at_barrier_ = 0;
  const void* barrier_ = nullptr;
  size_t barrier_turn_ = 0;
  Ready ready_;
  std::vector<Warp> warps_ = std::vector<Warp>(kMostThreads / kWarp);
  BlockMemory memory_;

  Fiber host_;
  std::vector<Stack*> stack_of_, idle_;
  Stack* running_ = nullptr;
  std::exception_ptr error_;

  std::vector<void*> tsan_;  // what threads are to it
  size_t turn_ = 0;
  void* host_tsan_ = nullptr;
  char launch_order_ = 0, end_order_ = 0;
};

}  // namespace

void wait_for_block(const void* where) { Scheduler::get().wait_for_block(where); }
const uint64_t* exchange(uint32_t mask, uint64_t mine, const void* where) {
  return Scheduler::get().exchange(mask, mine, where);
}
void* shared_memory(size_t bytes) { return Scheduler::get().shared_memory(bytes); }

void look_at(const void* begin, size_t bytes) noexcept { Scheduler::get().look_at(begin, bytes); }
void watch_accesses(MayAccess may_access) { Scheduler::get().watch(may_access); }

void set_order(Order order) { Scheduler::get().set_order(order); }
Counts counts() { return Scheduler::get().counts(); }
std::map<std::string, Grids> functions_run() { return Scheduler::get().functions_run(); }
void run_threads(const KernelCall& call, const void* arguments) { Scheduler::get().run(call, arguments); }

}  // namespace plumb::emulator
