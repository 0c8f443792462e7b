#include "graph/program.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/block.h"
#include "graph/recording.h"

namespace plumb {

struct Program::Impl {
  struct Step {
    const Kernel* kernel;
    Launch launch;
    const Prepared* prepared;
    Phase phase;
  };
  struct Watched {  // a value whose pack is kept, and the version that the pack is of
    Ref<Value> value;
    uint32_t version;
  };
  std::vector<Step> steps, packers;
  std::vector<void*> pointers;  // of all launches
  std::vector<Watched> watched;
  std::vector<Ref<Value>> written, held;
  std::vector<Ref<Prepared>> kernels;
  Block arena, workspace;
  TensorList outputs;
  ProgramStats stats;
};

Program::Program() = default;
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;
Program::~Program() = default;
const TensorList& Program::outputs() const {
  PLUMB_CHECK(impl_, "outputs: the program is empty; make it with capture");
  return impl_->outputs;
}
const ProgramStats& Program::stats() const {
  PLUMB_CHECK(impl_, "stats: the program is empty; make it with capture");
  return impl_->stats;
}

std::vector<const Prepared*> Program::kernels() const {
  PLUMB_CHECK(impl_, "kernels: the program is empty; make it with capture");
  std::vector<const Prepared*> all;
  for (const auto& s : impl_->steps) all.push_back(s.prepared);
  return all;
}

namespace {

void run_steps(const auto& steps) {
  if (!ctx.observer) [[likely]] {
    for (const auto& s : steps) s.kernel->run(s.launch);
    return;
  }
  for (const auto& s : steps) {
    const Scoped<Phase> phase(ctx.phase, s.phase);
    ctx.observer->before(*s.prepared);
    s.kernel->run(s.launch);
    ctx.observer->after(*s.prepared, s.launch);
  }
}

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

void Program::run() {
  PLUMB_CHECK(impl_, "run: the program is empty; make it with capture");
  PLUMB_CHECK(!ctx.recorder,
              "run: a capture is under way on this thread, and would not record the program; call its function there");
  Impl& p = *impl_;
  // Before the work: what a step that throws half-way has written counts as written, too.
  for (const auto& v : p.written) v->bump_version();
  for (const auto& w : p.watched) {
    if (w.value->version() == w.version) continue;
    run_steps(p.packers);
    for (auto& each : p.watched) each.version = each.value->version();
    break;
  }
  run_steps(p.steps);
}

Program capture(const std::function<TensorList()>& step) {
  PLUMB_CHECK(step, "capture: the function is empty");
  PLUMB_CHECK(!ctx.recorder, "capture: a capture is under way on this thread already");
  graph::Recording recording;
  TensorList returned;
  {
    const Scoped<Recorder*> on(ctx.recorder, &recording);
    returned = step();
  }
  for (const Tensor& t : returned) PLUMB_CHECK(t, "capture: the captured function returned an empty tensor");

  Program program;
  program.impl_ = std::make_unique<Program::Impl>();
  Program::Impl& p = *program.impl_;
  p.stats.recorded = static_cast<int64_t>(recording.ops.size());
  graph::prune(recording.ops, returned);
  const std::vector<graph::RecordedOp>& ops = recording.ops;

  std::vector<Value*> written;
  for (const auto& op : ops) {
    for (uint32_t i = op.writes.first; i < op.writes.first + op.writes.count; ++i) {
      written.push_back(op.in[i]->root());
      if (!op.in[i]->is_symbolic()) p.written.push_back(op.in[i]);
    }
  }

  // Packs of what the program does not write are made when that changes, not in every run.
  std::vector<bool> is_kept(ops.size());
  for (size_t i = 0; i < ops.size(); ++i) {
    if (!ops[i].is_pack) continue;
    Value* plain = ops[i].in[0]->root();
    is_kept[i] = !plain->is_symbolic() && std::find(written.begin(), written.end(), plain) == written.end();
    if (is_kept[i]) p.watched.push_back({ops[i].in[0], ops[i].in[0]->version() - 1});
  }

  // Lifetimes of the values between. Outputs and kept packs have memory of their own, or to the end.
  std::unordered_map<Value*, Ref<Value>> roots;
  for (const Tensor& t : returned) p.outputs.push_back(output_like(t, roots));
  for (const auto& [symbolic, own] : roots) p.written.push_back(own);
  std::unordered_set<Value*> made;
  for (const auto& op : ops) {
    for (const auto& v : op.out) made.insert(v.get());
  }
  for (const auto& [symbolic, own] : roots) {
    PLUMB_CHECK(made.contains(symbolic), "capture: a tensor {} from an earlier capture was returned", symbolic->spec);
  }
  std::unordered_map<Value*, size_t> index;
  std::vector<graph::Lifetime> lifetimes;
  for (size_t i = 0; i < ops.size(); ++i) {
    const int now = static_cast<int>(i);
    for (const auto& v : ops[i].out) {
      if (roots.contains(v.get())) continue;
      index[v.get()] = lifetimes.size();
      lifetimes.push_back({aligned(v->spec.bytes()), is_kept[i] ? -1 : now, is_kept[i] ? kForever : now});
      p.stats.unplanned_bytes += lifetimes.back().bytes;
    }
    for (const auto& v : ops[i].in) {
      Value* root = v->root();
      if (const auto it = index.find(root); it != index.end()) {
        lifetimes[it->second].last = std::max(lifetimes[it->second].last, now);
      } else if (!roots.contains(root)) {
        PLUMB_CHECK(!root->is_symbolic(), "capture: a tensor {} from an earlier capture was used", root->spec);
        p.held.push_back(v);
      }
    }
  }
  p.stats.arena_bytes = graph::plan_memory(lifetimes);
  for (const auto& op : ops)
    p.stats.workspace_bytes = std::max(p.stats.workspace_bytes, op.kernel->kernel->info().workspace_bytes);
  p.arena = block_of(p.stats.arena_bytes, MemoryClass::kActivation);
  p.workspace = block_of(p.stats.workspace_bytes, MemoryClass::kWorkspace);

  const auto address = [&](Value* v) -> void* {
    Value* root = v->root();
    if (const auto it = index.find(root); it != index.end()) {
      return static_cast<char*>(p.arena.get()) + lifetimes[it->second].offset;
    }
    if (const auto it = roots.find(root); it != roots.end()) return it->second->data;
    return root->data;
  };
  size_t count = 0;
  for (const auto& op : ops) count += op.in.size() + op.out.size() + 2;
  p.pointers.reserve(count);  // launches point into it
  for (size_t i = 0; i < ops.size(); ++i) {
    void** in = p.pointers.data() + p.pointers.size();
    for (const auto& v : ops[i].in) p.pointers.push_back(address(v.get()));
    void** out = p.pointers.data() + p.pointers.size();
    for (const auto& v : ops[i].out) p.pointers.push_back(address(v.get()));
    const Prepared* prepared = ops[i].kernel.get();
    (is_kept[i] ? p.packers : p.steps)
        .push_back({prepared->kernel.get(), {in, out, p.workspace.get()}, prepared, ops[i].phase});
    p.kernels.push_back(ops[i].kernel);
  }
  p.stats.steps = static_cast<int64_t>(p.steps.size());
  return program;
}

StaticFunction::StaticFunction(Function f) : function_(std::move(f)) {
  PLUMB_CHECK(function_, "captured function: the function is empty");
}

StaticFunction::Captured& StaticFunction::captured(std::span<const Tensor> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    PLUMB_CHECK(inputs[i], "captured function: input {} is an empty tensor", i);
  }
  for (const auto& c : all_) {
    if (std::equal(inputs.begin(), inputs.end(), c->inputs.begin(), c->inputs.end(),
                   [](const Tensor& a, const Tensor& b) { return a.spec() == b.spec(); })) {
      return *c;
    }
  }
  auto fresh = std::make_unique<Captured>();
  for (const Tensor& t : inputs) fresh->inputs.push_back(Tensor::empty(t.spec(), MemoryClass::kInput));
  fresh->program = capture([&] { return function_(fresh->inputs); });
  all_.push_back(std::move(fresh));
  return *all_.back();
}

const TensorList& StaticFunction::operator()(std::span<const Tensor> inputs) {
  Captured& c = captured(inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    PLUMB_CHECK(!inputs[i].value->is_symbolic(),
                "captured function: input {} has no data while another capture is under way", i);
    std::memcpy(c.inputs[i].value->data, inputs[i].value->data, inputs[i].bytes());
    c.inputs[i].value->bump_version();
  }
  c.program.run();
  return c.program.outputs();
}

}  // namespace plumb
