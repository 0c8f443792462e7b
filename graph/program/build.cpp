#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "graph/program/impl.h"

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
  Builder(Impl& program, const std::vector<RecordedOp>& ops) : p_(program), ops_(ops), is_kept_(ops.size()) {}

  void build(const TensorList& returned) {
    keep_packs(find_writes());
    make_outputs(returned);
    find_lifetimes();
    allocate();
    bind_launches();
  }

 private:
  // The roots of all that is written, also of values of the capture's own.
  std::vector<Value*> find_writes() {
    std::vector<Value*> roots;
    for (const auto& op : ops_) {
      for (uint32_t i = op.writes.first; i < op.writes.first + op.writes.count; ++i) {
        roots.push_back(op.in[i]->root());
        if (!op.in[i]->is_symbolic()) p_.written.push_back(op.in[i]);
      }
    }
    return roots;
  }

  // Packs of what the program does not write are made when that changes, not in every run.
  void keep_packs(const std::vector<Value*>& written) {
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (!ops_[i].is_pack) continue;
      const Ref<Value>& plain = ops_[i].in[0];
      Value* root = plain->root();
      is_kept_[i] = !root->is_symbolic() && std::find(written.begin(), written.end(), root) == written.end();
      if (is_kept_[i]) p_.watched.push_back({plain, plain->version() - 1});  // stale, so that the first run packs
    }
  }

  void make_outputs(const TensorList& returned) {
    for (const Tensor& t : returned) p_.outputs.push_back(output_like(t, outputs_));
    for (const auto& [symbolic, own] : outputs_) p_.written.push_back(own);
    std::unordered_set<Value*> made;
    for (const auto& op : ops_) {
      for (const auto& v : op.out) made.insert(v.get());
    }
    for (const auto& [symbolic, own] : outputs_) {
      PLUMB_CHECK(made.contains(symbolic), "capture: a tensor {} from an earlier capture was returned", symbolic->spec);
    }
  }

  // Lifetimes of the values between. Outputs have memory of their own, kept packs have theirs to the end.
  void find_lifetimes() {
    for (size_t i = 0; i < ops_.size(); ++i) {
      const int now = static_cast<int>(i);
      for (const auto& v : ops_[i].out) {
        if (!outputs_.contains(v.get())) start_life(v.get(), is_kept_[i] ? -1 : now, is_kept_[i] ? kForever : now);
      }
      for (const auto& v : ops_[i].in) read(v, now);
    }
  }

  void start_life(Value* v, int first, int last) {
    between_[v] = lifetimes_.size();
    lifetimes_.push_back({detail::aligned(v->spec.bytes()), first, last});
    p_.stats.unplanned_bytes += lifetimes_.back().bytes;
  }

  // A value between lives on until this read; one from before the capture is held.
  void read(const Ref<Value>& v, int now) {
    Value* root = v->root();
    if (const auto it = between_.find(root); it != between_.end()) {
      lifetimes_[it->second].last = std::max(lifetimes_[it->second].last, now);
    } else if (!outputs_.contains(root)) {
      PLUMB_CHECK(!root->is_symbolic(), "capture: a tensor {} from an earlier capture was used", root->spec);
      p_.held.push_back(v);
    }
  }

  void allocate() {
    ProgramStats& stats = p_.stats;
    stats.arena_bytes = detail::plan_memory(lifetimes_);
    for (const auto& op : ops_)
      stats.workspace_bytes = std::max(stats.workspace_bytes, op.kernel->kernel->info().workspace_bytes);
    p_.arena = detail::block_of(stats.arena_bytes, MemoryClass::kActivation);
    p_.workspace = detail::block_of(stats.workspace_bytes, MemoryClass::kWorkspace);
  }

  void bind_launches() {
    size_t count = 0;
    for (const auto& op : ops_) count += op.in.size() + op.out.size() + 2;
    p_.pointers.reserve(count);  // launches point into it
    for (size_t i = 0; i < ops_.size(); ++i) {
      void** in = bind(ops_[i].in);
      void** out = bind(ops_[i].out);
      const Prepared* prepared = ops_[i].kernel.get();
      (is_kept_[i] ? p_.packers : p_.steps)
          .push_back({prepared->kernel.get(), {in, out, p_.workspace.get()}, prepared, ops_[i].phase});
      p_.kernels.push_back(ops_[i].kernel);
    }
    p_.stats.steps = static_cast<int64_t>(p_.steps.size());
  }

  void** bind(const std::vector<Ref<Value>>& values) {
    void** first = p_.pointers.data() + p_.pointers.size();
    for (const auto& v : values) p_.pointers.push_back(address(v->root()));
    return first;
  }

  void* address(Value* root) const {
    if (const auto it = between_.find(root); it != between_.end())
      return static_cast<char*>(p_.arena.get()) + lifetimes_[it->second].offset;
    if (const auto it = outputs_.find(root); it != outputs_.end()) return it->second->data;
    return root->data;
  }

  Impl& p_;
  const std::vector<RecordedOp>& ops_;
  std::vector<bool> is_kept_;                       // of each op: a pack that is not made in every run
  std::unordered_map<Value*, Ref<Value>> outputs_;  // roots that are returned, and their memory
  std::unordered_map<Value*, size_t> between_;      // other values that the ops make: index into lifetimes_
  std::vector<detail::Lifetime> lifetimes_;
};

void Program::Impl::build(const std::vector<RecordedOp>& ops, const TensorList& returned) {
  Builder(*this, ops).build(returned);
}

}  // namespace plumb
