#include "dispatch/gate.h"

#include "core/runtime.h"
#include "dispatch/pack.h"
#include "dispatch/recorder.h"

namespace plumb::detail {
namespace {

[[gnu::noinline, gnu::cold]] void refuse_input(const KernelKind& kind, Inputs in, size_t i) {
  PLUMB_CHECK(in[i].value, "{}: input {} is an empty tensor", kind.name, i);
  PLUMB_CHECK(in[i].value->device == in[0].value->device,
              "{}: input {} is on {} and input 0 on {}; bring them together with to(x, device)", kind.name, i,
              in[i].value->device, in[0].value->device);
  fail(
      "{}: input {} {} comes from a captured step and has no memory outside of it; return it from the captured "
      "function; a handle from outside that is given another tensor inside it keeps that: write into it with copy_from",
      kind.name, i, in[i].value->spec);
}

// Holds the pointers of a launch: on the stack for most ops, in pool memory for ops with any number of tensors.
class Pointers {
 public:
  explicit Pointers(size_t n) {
    if (n > std::size(few_)) [[unlikely]]
      many_.resize(n);
  }
  void** data() { return many_.empty() ? few_ : many_.data(); }
  void*& operator[](size_t i) { return data()[i]; }

 private:
  void* few_[16];
  PoolVector<void*> many_;
};

Launch launch_of(const PreparedKernel& p, void* const* in, void* const* out) {
  const size_t bytes = p.kernel->info().workspace_bytes;
  if (!p.policy.device.is_cpu()) [[unlikely]] {
    Runtime& r = runtime_of(p.policy.device);
    return {in, out, bytes ? r.workspace(bytes) : nullptr, r.stream()};
  }
  if (bytes > ctx.workspace_bytes) [[unlikely]]
    grow_workspace(bytes);
  return {in, out, ctx.workspace};
}

// An observer may run ops: the gate then looks up kernels, which could free this one, and may grow the workspace.
[[gnu::noinline, gnu::cold]] void run_observed(const Ref<PreparedKernel> p, void* const* in, void* const* out) {
  ctx.observer->before(*p);
  const Launch launch = launch_of(*p, in, out);
  p->kernel->run(launch);
  ctx.observer->after(*p, launch);
}

}  // namespace

void run_now(PreparedKernel& p, void* const* in, void* const* out) {
  if (ctx.observer) [[unlikely]] {
    run_observed(Ref<PreparedKernel>(&p), in, out);
  } else {
    p.kernel->run(launch_of(p, in, out));
  }
}

void dispatch(const KernelKind& kind, const void* params, Inputs in, std::span<const TensorSpec> specs, Ref<Value>* y,
              Writes writes) {
  for (size_t i = 0; i < in.size(); ++i) {
    if (!in[i].value || in[i].value->device != in[0].value->device) [[unlikely]]
      refuse_input(kind, in, i);
  }
  const Device device = in.empty() ? ctx.policy.device : in[0].value->device;
  PreparedKernel* p = find_kernel(kind, params, in, specs, device);
  const KernelInfo& info = p->kernel->info();
  for (size_t i = 0; i < specs.size(); ++i) y[i] = Value::make(specs[i], ctx.memory_class, device);

  // Packs weights into the kernel's own format, once per version. `hold` keeps the kernel while packers are looked up.
  Ref<PreparedKernel> hold;
  PoolVector<Ref<Value>> packs;
  PoolVector<In> with_packs;
  const Inputs plain = in;
  if (!info.packs.empty()) [[unlikely]] {
    hold = Ref<PreparedKernel>(p);
    with_packs.resize(in.size());
    In* replaced = with_packs.data();
    std::copy(in.begin(), in.end(), replaced);
    for (const PackRequest& r : info.packs) {
      packs.push_back(packed(in[static_cast<size_t>(r.input)].value, r.layout));
      replaced[r.input].value = packs.back().get();
    }
    in = {replaced, in.size()};
  }

  if (ctx.recorder) [[unlikely]] {
    ctx.recorder->append(p, plain, in, {y, specs.size()}, writes);
  } else {
    Pointers inputs(in.size()), outputs(specs.size());
    for (size_t i = 0; i < in.size(); ++i) {
      inputs[i] = in[i].value->data;
      if (!inputs[i] && in[i].value->is_symbolic()) [[unlikely]]
        refuse_input(kind, in, i);
    }
    for (size_t i = 0; i < specs.size(); ++i) outputs[i] = y[i]->data;
    // Raise versions before the work, so that a write counts even if an observer throws after it.
    for (uint32_t i = writes.first; i < writes.first + writes.count; ++i) plain[i].value->bump_version();
    run_now(*p, inputs.data(), outputs.data());
  }
}

}  // namespace plumb::detail
