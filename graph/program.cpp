#include "graph/program.h"

#include <algorithm>
#include <utility>

#include "dispatch/captured.h"
#include "dispatch/machine.h"
#include "graph/program/impl.h"

namespace plumb {

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

std::vector<const PreparedKernel*> Program::kernels() const {
  PLUMB_CHECK(impl_, "kernels: the program is empty; make it with capture");
  std::vector<const PreparedKernel*> all;
  for (const auto& s : impl_->steps) all.push_back(s.prepared);
  return all;
}

namespace {

void run_all(const auto& steps) {
  if (!detail::ctx.observer) [[likely]] {
    for (const auto& s : steps) s.kernel->run(s.launch);
    return;
  }
  for (const auto& s : steps) {
    const detail::Scoped<Phase> phase(detail::ctx.phase, s.phase);
    detail::ctx.observer->before(*s.prepared);
    s.kernel->run(s.launch);
    detail::ctx.observer->after(*s.prepared, s.launch);
  }
}

}  // namespace

// On a device, the first run launches kernels, since libraries set themselves up then; the second run captures a graph.
void Program::Impl::run_steps() {
  if (device.is_cpu()) [[likely]]
    return run_all(steps);
  Runtime& r = runtime_of(device);
  PLUMB_CHECK(r.is_present(), "run: {} is described and not here; a step is planned for it, and not run",
              r.properties().name);
  if (detail::ctx.observer || !has_run) {
    run_all(steps);
    has_run = true;
    return;
  }
  if (!graph) {
    graph = detail::captured(r, [&](Runtime::Stream stream) {
      for (const auto& s : steps) {
        Launch l = s.launch;
        l.stream = stream;
        s.kernel->run(l);
      }
    });
  }
  r.replay(*graph, r.stream());
}

void Program::run() {
  PLUMB_CHECK(impl_, "run: the program is empty; make it with capture");
  PLUMB_CHECK(!detail::ctx.recorder,
              "run: a capture is under way on this thread, and would not record the program; call its function there");
  Impl& p = *impl_;
  if (p.device.is_cpu()) detail::refuse_in_region("run", p.threads);
  // Raise versions before the work, so that the writes of a step that fails half-way count.
  for (const auto& v : p.written) v->bump_version();
  try {
    for (const auto& w : p.watched) {
      if (w.value->version() == w.version) continue;
      run_all(p.packers);
      for (auto& each : p.watched) each.version = each.value->version();
      break;
    }
    p.run_steps();
  } catch (...) {  // aliases count the writes through them; now that count is unreliable, and roots count once more
    for (const auto& v : p.written) v->root()->bump_version();
    throw;
  }
}

Program detail::capture_list(const std::function<TensorList()>& step) {
  PLUMB_CHECK(!detail::ctx.recorder, "capture: a capture is under way on this thread already");
  detail::Recording recording;
  TensorList returned;
  {
    const detail::Scoped<detail::Recorder*> on(detail::ctx.recorder, &recording);
    returned = step();
  }
  for (const Tensor& t : returned) PLUMB_CHECK(t, "capture: the captured function returned an empty tensor");

  Program program;
  program.impl_ = std::make_unique<Program::Impl>();
  program.impl_->threads = detail::threads_of(detail::ctx.policy);
  program.impl_->stats.recorded = static_cast<int64_t>(recording.ops.size());
  recording.prune(returned);
  program.impl_->build(std::move(recording), returned);
  return program;
}

StaticFunction::StaticFunction(Function f) : function_(std::move(f)), device_(detail::ctx.policy.device) {
  PLUMB_CHECK(function_, "captured function: the function is empty");
}

StaticFunction::Captured& StaticFunction::captured(std::span<const Tensor> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    PLUMB_CHECK(inputs[i], "captured function: input {} is an empty tensor", i);
    PLUMB_CHECK(!inputs[i].requires_grad() || !is_recording(),
                "captured function: input {} {} needs a gradient, and a replay puts nothing on the tape; call grad "
                "inside the function and return its results, or pass detached()",
                i, inputs[i].spec());
  }
  PLUMB_CHECK(function_, "captured function: it was moved from");
  for (const auto& c : all_) {
    if (std::equal(inputs.begin(), inputs.end(), c->inputs.begin(), c->inputs.end(),
                   [](const Tensor& a, const Tensor& b) { return a.spec() == b.spec(); })) {
      return *c;
    }
  }
  auto fresh = std::make_unique<Captured>();
  for (const Tensor& t : inputs) fresh->inputs.push_back(Tensor::empty(t.spec(), MemoryClass::kInput, device_));
  // A result that is an input, or a view of one, would change when the next call fills the inputs, perhaps from itself.
  const auto is_input = [&](const Tensor& t) {
    return t &&
           std::ranges::any_of(fresh->inputs, [&](const Tensor& in) { return in.value->root() == t.value->root(); });
  };
  const DeviceScope on(device_);
  fresh->program = capture([&] {
    TensorList results = function_(fresh->inputs);
    for (Tensor& t : results) {
      if (is_input(t)) t = t.clone();
    }
    return results;
  });
  all_.push_back(std::move(fresh));
  return *all_.back();
}

const TensorList& StaticFunction::operator()(std::span<const Tensor> inputs) {
  Captured& c = captured(inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    PLUMB_CHECK(!inputs[i].value->is_symbolic(),
                "captured function: input {} comes from a captured step and has no memory outside of it", i);
    detail::copy_bytes(c.inputs[i].value->data, device_, inputs[i].value->data, inputs[i].device(), inputs[i].bytes());
    c.inputs[i].value->bump_version();
  }
  c.program.run();
  return c.program.outputs();
}

}  // namespace plumb
