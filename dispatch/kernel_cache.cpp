#include "dispatch/kernel_cache.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "core/value.h"
#include "dispatch/machine.h"
#include "dispatch/select.h"

namespace plumb {

using detail::hash_words;
using detail::Ref;
namespace {

// A logical clock for eviction: it ticks when a kernel is prepared or a thread first uses it, and stamps the kernel.
constinit std::atomic<uint64_t> clock_of_uses{1};
void stamp(PreparedKernel& p) {
  const uint64_t now = clock_of_uses.load(std::memory_order_relaxed);
  if (p.last_used.load(std::memory_order_relaxed) != now) p.last_used.store(now, std::memory_order_relaxed);
}
void stamp_later(PreparedKernel& p) {
  clock_of_uses.fetch_add(1, std::memory_order_relaxed);
  stamp(p);
}

struct Shared {
  std::mutex mutex;
  std::unordered_multimap<uint64_t, Ref<PreparedKernel>> kernels;
  int64_t prepared = 0, capacity = 8192;
  std::atomic<uint64_t> epoch{1};  // raised when kernels are evicted
};
Shared& shared() {
  static Shared* s = new Shared;  // outlives every thread and static tensor
  return *s;
}

// One per thread: an open-addressed table of shared kernels. Its references keep an evicted kernel alive until the
// thread notices the new epoch.
struct Front {
  std::vector<Ref<PreparedKernel>> table = std::vector<Ref<PreparedKernel>>(64);
  size_t used = 0;
  uint64_t epoch = 0;

  size_t mask() const { return table.size() - 1; }
  void insert(Ref<PreparedKernel> p) {
    if (2 * (used + 1) > table.size()) {
      std::vector<Ref<PreparedKernel>> old = std::move(table);
      table = std::vector<Ref<PreparedKernel>>(old.size() * 2);
      for (auto& e : old) {
        if (e) place(std::move(e));
      }
    }
    place(std::move(p));
    ++used;
  }
  void place(Ref<PreparedKernel> p) {
    size_t i = p->hash & mask();
    while (table[i]) i = (i + 1) & mask();
    table[i] = std::move(p);
  }
};

constinit thread_local uint64_t lookups = 0;

struct Key {
  const detail::KernelKind& kind;
  const void* params;
  Policy policy;
  std::span<const TensorSpec> out;
};

// A kernel is made for so many threads, also where OpenMP's own number is another by the next call.
void resolve_threads(Policy& policy) { policy.threads = static_cast<uint16_t>(detail::threads_of(policy)); }

template <class SpecAt>
uint64_t hash_of(const Key& key, size_t n_in, SpecAt in) {
  uint64_t h =
      detail::mix(reinterpret_cast<uintptr_t>(&key.kind) ^ 0x1234567, key.policy.word() ^ 0x9E3779B97F4A7C15ull);
  h = hash_words(key.params, key.kind.param_words, h);
  uint64_t seed = 0x632BE59BD9B4E019ull;
  for (size_t i = 0; i < n_in; ++i) h += hash_words(in(i), 8, seed += 0xD6E8FEB86659FD92ull);
  for (const TensorSpec& s : key.out) h += hash_words(&s, 8, seed += 0xA0761D6478BD642Full);
  return h ^ (h >> 32);
}

template <class SpecAt>
bool same(const PreparedKernel& p, const Key& key, size_t n_in, SpecAt in) {
  if (p.kind != &key.kind || p.policy != key.policy || p.n_in != n_in || p.specs.size() != n_in + key.out.size()) {
    return false;
  }
  if (key.kind.param_words && std::memcmp(p.params.data(), key.params, key.kind.param_words * 8) != 0) return false;
  const TensorSpec* s = p.specs.data();
  for (size_t i = 0; i < n_in; ++i) {
    if (!(*s++ == *in(i))) return false;
  }
  return std::equal(key.out.begin(), key.out.end(), s);
}

void evict_old(Shared& s) {
  if (static_cast<int64_t>(s.kernels.size()) <= s.capacity) return;
  std::vector<uint64_t> ages;
  for (const auto& [hash, p] : s.kernels) ages.push_back(p->last_used.load(std::memory_order_relaxed));
  const auto keep = std::max<std::ptrdiff_t>(1, static_cast<std::ptrdiff_t>(s.capacity / 2));
  std::nth_element(ages.begin(), ages.end() - keep, ages.end());
  const uint64_t oldest = *(ages.end() - keep);
  std::erase_if(s.kernels, [&](const auto& e) { return e.second->last_used.load(std::memory_order_relaxed) < oldest; });
  s.epoch.fetch_add(1, std::memory_order_release);
}

template <class SpecAt>
Ref<PreparedKernel> find_or_prepare(const Key& key, uint64_t hash, size_t n_in, SpecAt in) {
  Shared& s = shared();
  const std::lock_guard lock(s.mutex);  // held while measuring, too: two measurements at once would disturb each other
  const auto [first, last] = s.kernels.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    if (!same(*it->second, key, n_in, in)) continue;
    stamp_later(*it->second);
    return it->second;
  }
  auto p = Ref<PreparedKernel>::adopt(new PreparedKernel);
  p->kind = &key.kind;
  p->hash = hash;
  p->policy = key.policy;
  p->n_in = static_cast<uint32_t>(n_in);
  p->params.resize(key.kind.param_words + 1);  // never empty, since the kind may take a reference to its parameters
  std::memcpy(p->params.data(), key.params, key.kind.param_words * 8);
  for (size_t i = 0; i < n_in; ++i) p->specs.push_back(*in(i));
  p->specs.insert(p->specs.end(), key.out.begin(), key.out.end());
  p->kernel = detail::select_kernel(*p);
  stamp_later(*p);
  ++s.prepared;
  s.kernels.emplace(hash, p);
  evict_old(s);
  return p;
}

Front& front() {
  if (!detail::ctx.front) [[unlikely]] {
    detail::ctx.front = new Front;
    detail::watch_thread_end([](void* f) { delete static_cast<Front*>(f); });
  }
  return *static_cast<Front*>(detail::ctx.front);
}

[[gnu::noinline, gnu::cold]] PreparedKernel* miss(const Key& key, uint64_t hash, detail::Inputs in) {
  const auto at = [&](size_t i) { return &in[i].value->spec; };
  Front& f = front();
  Shared& s = shared();
  Ref<PreparedKernel> p = find_or_prepare(key, hash, in.size(), at);
  if (const uint64_t now = s.epoch.load(std::memory_order_acquire); f.epoch != now) {
    f = Front();  // kernels were evicted: start again, so that this table keeps none of them alive
    f.epoch = now;
  }
  f.insert(p);
  return p.get();
}

}  // namespace

namespace detail {

size_t read_bytes(const KernelKind& kind, KernelKind::Specs in) {
  size_t bytes = bytes_of(in);
  size_t k = 0;
  for (unsigned rest = kind.unread; rest; rest >>= 1, ++k) bytes -= rest & 1 ? in[k].bytes() : 0;
  return bytes;
}

PreparedKernel* find_kernel(const KernelKind& kind, const void* params, Inputs in, std::span<const TensorSpec> out,
                            Device device) {
  ++lookups;
  Key key{kind, params, ctx.policy, out};
  key.policy.device = device;
  if (device.is_cpu()) [[likely]] {
    resolve_threads(key.policy);
    refuse_in_region(kind.name, key.policy.threads);
  }
  const auto at = [&](size_t i) { return &in[i].value->spec; };
  const uint64_t hash = hash_of(key, in.size(), at);
  const Front& f = front();
  for (size_t i = hash & f.mask();; i = (i + 1) & f.mask()) {
    PreparedKernel* p = f.table[i].get();
    if (!p) break;
    if (p->hash == hash && same(*p, key, in.size(), at)) {
      stamp(*p);
      return p;
    }
  }
  return miss(key, hash, in);
}

Ref<PreparedKernel> prepare_kernel(const KernelKind& kind, const void* params, std::span<const TensorSpec> in,
                                   std::span<const TensorSpec> out) {
  Key key{kind, params, ctx.policy, out};
  if (key.policy.device.is_cpu()) resolve_threads(key.policy);
  const auto at = [&](size_t i) { return &in[i]; };
  return find_or_prepare(key, hash_of(key, in.size(), at), in.size(), at);
}

}  // namespace detail

CacheStats cache_stats() {
  Shared& s = shared();
  const std::lock_guard lock(s.mutex);
  return {static_cast<int64_t>(s.kernels.size()), s.prepared};
}

uint64_t cache_lookups() { return lookups; }

void set_cache_capacity(int64_t kernels) {
  PLUMB_CHECK(kernels >= 1, "the kernel cache must hold at least one kernel, not {}", kernels);
  Shared& s = shared();
  const std::lock_guard lock(s.mutex);
  s.capacity = kernels;
  evict_old(s);
}

}  // namespace plumb
