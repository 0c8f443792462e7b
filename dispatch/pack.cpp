#include "dispatch/pack.h"

#include <deque>
#include <mutex>

#include "dispatch/gate.h"
#include "dispatch/recorder.h"

namespace plumb {

using detail::Ref;
using detail::Repack;
using detail::Value;

namespace {

// From the pool, as the value is: a value that lives for a step (a weight rounded to bf16) is packed in every step.
struct PacksOfValue final : Value::Packs {
  static void* operator new(size_t bytes) { return detail::ctx.pool.get(bytes); }
  static void operator delete(void* p, size_t bytes) { detail::ctx.pool.put(p, bytes); }
  struct Pack {
    Layout layout;
    uint32_t version;
    Ref<Value> value;
  };
  std::mutex mutex;
  detail::PoolVector<Pack> all;
};

// All registered formats.
struct Known {
  std::any key;
  Layout layout;
  PackFormat format;
};
struct Packers {
  std::mutex mutex;
  std::deque<Known> all;
};
Packers& packers() {
  static Packers* p = new Packers;
  return *p;
}

PacksOfValue& packs_of(Value* v) {
  if (!v->packs()) {
    auto* fresh = new PacksOfValue;
    if (!v->install_packs(fresh)) delete fresh;
  }
  return static_cast<PacksOfValue&>(*v->packs());
}

void repack_into(Value* plain, Value* pack) {
  const detail::In in{plain};
  const NoParams params;
  PreparedKernel* p = detail::find_kernel(detail::kind_of<Repack>, &params, {&in, 1}, {&pack->spec, 1}, plain->device);
  detail::run_now(*p, &plain->data, &pack->data);
}

}  // namespace

Layout detail::register_pack(std::any key, bool (*same)(const std::any&, const std::any&), PackFormat format) {
  Packers& p = packers();
  const std::lock_guard lock(p.mutex);
  for (const Known& known : p.all) {
    if (same(known.key, key)) return known.layout;
  }
  const Layout layout = new_pack(format.name, format.bytes);
  p.all.push_back({std::move(key), layout, std::move(format)});
  return layout;
}

const PackFormat& detail::format_of(Layout pack) {
  Packers& p = packers();
  const std::lock_guard lock(p.mutex);
  for (const Known& known : p.all) {
    if (known.layout == pack) return known.format;  // never removed
  }
  fail("pack {} has no packer", pack);
}

std::unique_ptr<Kernel> detail::make_packer(const TensorSpec& plain, Layout pack) {
  return format_of(pack).make(plain);
}

void Repack::cpu(const Problem<NoParams>& p, Candidates& candidates) {
  candidates.add(detail::format_of(p.out[0].layout).provider, "repack",
                 [plain = p.in[0], pack = p.out[0].layout] { return detail::make_packer(plain, pack); });
}

void Repack::cuda(const Problem<NoParams>& p, Candidates& candidates) { cpu(p, candidates); }

Ref<Value> detail::packed(Value* plain, Layout pack) {
  TensorSpec spec = plain->spec;
  spec.layout = pack;
  const MemoryScope memory(MemoryClass::kPack);
  if (detail::ctx.recorder) {
    if (Ref<Value> known = detail::ctx.recorder->find_pack(plain, pack)) return known;
    Ref<Value> made;
    const detail::In in{plain};
    const NoParams params;
    dispatch(kind_of<Repack>, &params, {&in, 1}, {&spec, 1}, &made, {});
    detail::ctx.recorder->keep_pack(plain, made);
    return made;
  }
  PLUMB_CHECK(!plain->is_symbolic(), "repack: {} comes from a captured step and has no memory outside of it",
              plain->spec);
  PacksOfValue& packs = packs_of(plain->root());
  const std::lock_guard lock(packs.mutex);
  // Drop packs that missed a renewal between two writes: nobody asks for them now (another layout, or a short batch).
  std::erase_if(packs.all, [&](const PacksOfValue::Pack& p) {
    return p.layout != pack && plain->version() - p.version > 1 && p.value.sole_owner();
  });
  for (auto& p : packs.all) {
    if (p.layout != pack || !(p.value->spec == spec)) continue;
    if (p.version == plain->version()) return p.value;
    if (!p.value.sole_owner()) p.value = Value::make(spec, MemoryClass::kPack, plain->device);
    repack_into(plain, p.value.get());
    p.version = plain->version();
    return p.value;
  }
  const Ref<Value> made = Value::make(spec, MemoryClass::kPack, plain->device);
  repack_into(plain, made.get());  // listed only once it is complete
  packs.all.push_back({pack, plain->version(), made});
  return made;
}

}  // namespace plumb
