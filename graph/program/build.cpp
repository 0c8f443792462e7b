#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "graph/program/impl.h"
#include "graph/program/memory_plan.h"

namespace plumb {

using detail::RecordedOp;
using detail::Ref;
using detail::Value;

namespace {

constexpr int kForever = 1 << 30;

// Memory of its own for a returned tensor, which outlives the runs.
Tensor output_like(const Tensor& t, std::unordered_map<Value*, Ref<Value>>& roots) {
  Value* root = t.value->root();
  if (!root->is_symbolic()) return t.detached();
  Ref<Value>& own = roots[root];
  if (!own) own = Value::make(root->spec, root->memory_class, false);
  return Tensor(t.value.get() == root ? own : Value::alias(own, t.spec()));
}

}  // namespace

// Makes a program of the recorded ops. Each step needs what the ones before it found.
class Program::Impl::Builder {
 public:
  Builder(Impl& program, const detail::Recording& recording)
      : p_(program), r_(recording), is_kept_(r_.ops.size()), between_(r_.made(), kNone) {}

  void build(const TensorList& returned) {
    keep_packs(find_writes());
    make_outputs(returned);
    find_lifetimes();
    allocate();
    bind_launches();
  }

 private:
  static constexpr size_t kNone = ~size_t{0};

  // The roots of all that is written, also of values of the capture's own.
  std::unordered_set<Value*> find_writes() {
    std::unordered_set<Value*> roots;
    for (const RecordedOp& op : r_.ops) {
      for (const auto& v : r_.written(op)) {
        roots.insert(v->root());
        if (!v->is_symbolic()) p_.written.push_back(v);
      }
    }
    return roots;
  }

  // Packs of what the program does not write are made when that changes, not in every run.
  void keep_packs(const std::unordered_set<Value*>& written) {
    for (size_t i = 0; i < r_.ops.size(); ++i) {
      if (!r_.ops[i].is_pack) continue;
      const Ref<Value>& plain = r_.in(r_.ops[i])[0];
      is_kept_[i] = !plain->root()->is_symbolic() && !written.contains(plain->root());
      if (is_kept_[i]) p_.watched.push_back({plain, plain->version() - 1});  // stale, so that the first run packs
    }
  }

  void make_outputs(const TensorList& returned) {
    for (const Tensor& t : returned) p_.outputs.push_back(output_like(t, outputs_));
    for (const auto& [symbolic, own] : outputs_) {
      PLUMB_CHECK(r_.has_made(symbolic), "capture: a tensor {} from an earlier capture was returned", symbolic->spec);
      p_.written.push_back(own);
    }
  }

  // Lifetimes of the values between. Outputs have memory of their own, kept packs have theirs to the end.
  void find_lifetimes() {
    for (size_t i = 0; i < r_.ops.size(); ++i) {
      const int now = static_cast<int>(i);
      for (const auto& v : r_.out(r_.ops[i])) {
        if (!outputs_.contains(v.get())) start_life(v.get(), is_kept_[i] ? -1 : now, is_kept_[i] ? kForever : now);
      }
      for (const auto& v : r_.in(r_.ops[i])) read(v, now);
    }
  }

  void start_life(Value* v, int first, int last) {
    between_[v->number] = lifetimes_.size();
    lifetimes_.push_back({detail::aligned(v->spec.bytes()), first, last});
    p_.stats.unplanned_bytes += lifetimes_.back().bytes;
  }

  // A value between lives on until this read; one from before the capture is held.
  void read(const Ref<Value>& v, int now) {
    Value* root = v->root();
    if (!root->is_symbolic()) {
      p_.held.push_back(v);
      return;
    }
    PLUMB_CHECK(r_.has_made(root), "capture: a tensor {} from an earlier capture was used", root->spec);
    if (const size_t life = between_[root->number]; life != kNone)
      lifetimes_[life].last = std::max(lifetimes_[life].last, now);
  }

  void allocate() {
    ProgramStats& stats = p_.stats;
    stats.arena_bytes = detail::plan_memory(lifetimes_);
    for (const RecordedOp& op : r_.ops)
      stats.workspace_bytes = std::max(stats.workspace_bytes, op.kernel->kernel->info().workspace_bytes);
    p_.arena = detail::block_of(stats.arena_bytes, MemoryClass::kActivation);
    p_.workspace = detail::block_of(stats.workspace_bytes, MemoryClass::kWorkspace);
  }

  void bind_launches() {
    size_t count = 0;
    for (const RecordedOp& op : r_.ops) count += op.n_in + op.n_out;
    p_.pointers.reserve(count);  // launches point into it
    for (size_t i = 0; i < r_.ops.size(); ++i) {
      const RecordedOp& op = r_.ops[i];
      void** in = bind(r_.in(op));
      void** out = bind(r_.out(op));
      (is_kept_[i] ? p_.packers : p_.steps)
          .push_back({op.kernel->kernel.get(), {in, out, p_.workspace.get()}, op.kernel.get(), op.phase});
      p_.kernels.push_back(op.kernel);
    }
    p_.stats.steps = static_cast<int64_t>(p_.steps.size());
  }

  void** bind(detail::Recording::Values values) {
    void** first = p_.pointers.data() + p_.pointers.size();
    for (const auto& v : values) p_.pointers.push_back(address(v->root()));
    return first;
  }

  void* address(Value* root) const {
    if (!root->is_symbolic()) return root->data;
    if (const size_t life = between_[root->number]; life != kNone)
      return static_cast<char*>(p_.arena.get()) + lifetimes_[life].offset;
    return outputs_.at(root)->data;
  }

  Impl& p_;
  const detail::Recording& r_;
  std::vector<bool> is_kept_;                       // of each op: a pack that is not made in every run
  std::unordered_map<Value*, Ref<Value>> outputs_;  // roots that are returned, and their memory
  std::vector<size_t> between_;                     // of each value that the ops make: index into lifetimes_, or kNone
  std::vector<detail::Lifetime> lifetimes_;
};

void Program::Impl::build(const detail::Recording& recording, const TensorList& returned) {
  Builder(*this, recording).build(returned);
}

}  // namespace plumb
