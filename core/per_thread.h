// One object per thread and owner: for kernels whose library has state that two threads must not share.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace plumb::detail {

/// Holds one T for each thread, made at the thread's first get. It is freed when the thread ends or, after the owner is
/// gone, when the thread reuses its slot. Later calls of get cost an index and a comparison.
template <class T>
class PerThread {
 public:
  PerThread() {
    Slots& s = slots();
    const std::lock_guard lock(s.mutex);
    id_ = ++s.ids;
    if (s.free.empty()) {
      slot_ = s.count++;
    } else {
      slot_ = s.free.back();
      s.free.pop_back();
    }
  }
  ~PerThread() {
    Slots& s = slots();
    const std::lock_guard lock(s.mutex);
    s.free.push_back(slot_);
  }
  PerThread(const PerThread&) = delete;
  PerThread& operator=(const PerThread&) = delete;

  /// `make` returns a std::unique_ptr<T>.
  template <class Make>
  T& get(const Make& make) const {
    std::vector<Entry>& all = entries();
    if (slot_ >= all.size()) all.resize(slot_ + 1);
    Entry& e = all[slot_];
    if (e.id == id_) [[likely]]
      return *e.value;
    auto made = make();
    // make() may itself have called get and resized the list: index it again.
    all[slot_] = {id_, std::move(made)};
    return *all[slot_].value;
  }

 private:
  struct Entry {
    uint64_t id = 0;
    std::unique_ptr<T> value;
  };
  static std::vector<Entry>& entries() {
    static thread_local std::vector<Entry> all;
    return all;
  }
  struct Slots {  // never freed: kernels outlive statics
    std::mutex mutex;
    std::vector<size_t> free;
    size_t count = 0;
    uint64_t ids = 0;
  };
  static Slots& slots() {
    static Slots* s = new Slots;
    return *s;
  }
  size_t slot_;
  uint64_t id_;
};

}  // namespace plumb::detail
