#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "graph/program/impl.h"
#include "graph/program/memory_plan.h"

namespace plumb {

using detail::RecordedOp;
using detail::Ref;
using detail::Source;
using detail::Value;

namespace {

constexpr int kForever = 1 << 30;

}  // namespace

// Makes a program from the recorded ops. Each step of build uses the results of the steps before it.
class Program::Impl::Builder {
 public:
  Builder(Impl& program, detail::Recording& recording)
      : p_(program),
        r_(recording),
        is_kept_(r_.ops.size()),
        is_output_(r_.made()),
        life_(r_.made(), kNone),
        place_(r_.made()) {}

  void build(const TensorList& returned) {
    find_device();
    keep_packs(find_writes());
    make_outputs(returned);
    find_lifetimes();
    allocate();
    bind_launches();
  }

 private:
  static constexpr uint32_t kNone = ~0u;

  void find_device() {
    if (r_.ops.empty()) return;
    const PreparedKernel& first = *r_.ops[0].kernel;
    p_.device = first.policy.device;
    for (const RecordedOp& op : r_.ops) {
      PLUMB_CHECK(op.kernel->policy.device == p_.device,
                  "capture: {} runs on {} and {} on {}; a program is of one device", op.kernel->kind->name,
                  op.kernel->policy.device, first.kind->name, p_.device);
    }
  }

  // The roots of all values that the program writes and that existed before the capture.
  std::unordered_set<Value*> find_writes() {
    std::unordered_set<Value*> roots;
    for (const RecordedOp& op : r_.ops) {
      for (const Source s : r_.written(op)) {
        if (s.is_made()) continue;
        roots.insert(r_.outside[s.index()]->root());
        p_.written.push_back(r_.outside[s.index()]);
      }
    }
    return roots;
  }

  // If the program does not write a value, its pack is made only when the value changes, not in every run.
  void keep_packs(const std::unordered_set<Value*>& written) {
    for (size_t i = 0; i < r_.ops.size(); ++i) {
      if (!r_.ops[i].is_pack) continue;
      const Source source = r_.in(r_.ops[i])[0];
      if (source.is_made()) continue;
      const Ref<Value>& plain = r_.outside[source.index()];
      is_kept_[i] = !written.contains(plain->root());
      if (is_kept_[i]) p_.watched.push_back({plain, plain->version() - 1});  // stale, so that the first run packs
    }
  }

  void make_outputs(const TensorList& returned) {
    for (const Tensor& t : returned) p_.outputs.push_back(output_like(t));
    for (const auto& [number, own] : outputs_) {
      is_output_[number] = true;
      place_[number] = own->data;
      p_.written.push_back(own);
    }
  }

  // Own memory for a returned tensor, since it outlives the runs.
  Tensor output_like(const Tensor& t) {
    Value* root = t.value->root();
    if (!root->is_symbolic()) return t.detached();
    PLUMB_CHECK(r_.has_made(root), "capture: a tensor {} from an earlier capture was returned", root->spec);
    Ref<Value>& own = outputs_[root->number];
    if (!own) own = Value::make(root->spec, root->memory_class, root->device, false);
    return Tensor(t.value.get() == root ? own : Value::alias(own, t.spec()));
  }

  // Lifetimes of intermediate values. Outputs have their own memory; kept packs keep theirs forever.
  void find_lifetimes() {
    for (size_t i = 0; i < r_.ops.size(); ++i) {
      const int now = static_cast<int>(i);
      for (const Source s : r_.out(r_.ops[i])) {
        if (!is_output_[s.index()]) start_life(s.index(), is_kept_[i] ? -1 : now, is_kept_[i] ? kForever : now);
      }
      for (const Source s : r_.in(r_.ops[i])) read(s, now);
    }
  }

  void start_life(size_t number, int first, int last) {
    life_[number] = static_cast<uint32_t>(lifetimes_.size());
    lifetimes_.push_back({detail::aligned(r_.bytes_of(number)), first, last});
    size_t& sum = p_.stats.unplanned_bytes;
    PLUMB_CHECK(!__builtin_add_overflow(sum, lifetimes_.back().bytes, &sum),
                "capture: the intermediate values take 2^64 bytes or more; capture a smaller batch");
  }

  // Extends an intermediate value's life to this read; holds a value from before the capture.
  void read(Source s, int now) {
    if (s.is_made()) {
      if (const uint32_t life = life_[s.index()]; life != kNone)
        lifetimes_[life].last = std::max(lifetimes_[life].last, now);
      return;
    }
    const Ref<Value>& v = r_.outside[s.index()];
    PLUMB_CHECK(!v->is_symbolic(), "capture: a tensor {} from an earlier capture was used", v->spec);
    if (p_.held.empty() || p_.held.back().get() != v.get()) p_.held.push_back(v);
  }

  void allocate() {
    ProgramStats& stats = p_.stats;
    stats.arena_bytes = detail::plan_memory(lifetimes_);
    for (const RecordedOp& op : r_.ops)
      stats.workspace_bytes = std::max(stats.workspace_bytes, op.kernel->kernel->info().workspace_bytes);
    p_.arena = detail::block_of(stats.arena_bytes, MemoryClass::kActivation, p_.device);
    p_.workspace = detail::block_of(stats.workspace_bytes, MemoryClass::kWorkspace, p_.device);
    for (size_t n = 0; n < life_.size(); ++n) {
      if (life_[n] != kNone) place_[n] = static_cast<char*>(p_.arena.get()) + lifetimes_[life_[n]].offset;
    }
  }

  void bind_launches() {
    size_t count = 0;
    for (const RecordedOp& op : r_.ops) count += op.n_in + op.n_out;
    p_.pointers.reserve(count);  // launches point into it, so it must not grow
    p_.steps.reserve(r_.ops.size());
    p_.kernels.reserve(r_.ops.size());
    void* const stream = p_.device.is_cpu() ? nullptr : runtime_of(p_.device).stream();
    for (size_t i = 0; i < r_.ops.size(); ++i) {
      RecordedOp& op = r_.ops[i];
      void** in = bind(r_.in(op));
      void** out = bind(r_.out(op));
      (is_kept_[i] ? p_.packers : p_.steps)
          .push_back({op.kernel->kernel.get(), {in, out, p_.workspace.get(), stream}, op.kernel.get(), op.phase});
      p_.kernels.push_back(std::move(op.kernel));
    }
    p_.stats.steps = static_cast<int64_t>(p_.steps.size());
  }

  void** bind(detail::Recording::Sources sources) {
    void** first = p_.pointers.data() + p_.pointers.size();
    for (const Source s : sources) p_.pointers.push_back(s.is_made() ? place_[s.index()] : r_.outside[s.index()]->data);
    return first;
  }

  Impl& p_;
  detail::Recording& r_;
  std::vector<bool> is_kept_;                       // per op: a pack that is not made in every run
  std::vector<bool> is_output_;                     // per value that the ops make
  std::unordered_map<size_t, Ref<Value>> outputs_;  // returned values by number, with their memory
  std::vector<uint32_t> life_;                      // per value that the ops make: index into lifetimes_, or kNone
  std::vector<detail::Lifetime> lifetimes_;
  std::vector<void*> place_;  // per value that the ops make
};

void Program::Impl::build(detail::Recording&& recording, const TensorList& returned) {
  Builder(*this, recording).build(returned);
}

}  // namespace plumb
