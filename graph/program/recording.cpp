#include "graph/program/recording.h"

#include "kernels/pack.h"

namespace plumb::detail {

Recording::~Recording() {
  for (Value* v : raised_) v->lower_version();
  for (const auto& v : values_) v->recorded -= v->is_symbolic();
}

void Recording::append(Prepared* kernel, Inputs plain, Inputs in, std::span<const Ref<Value>> out, Writes writes) {
  RecordedOp op{Ref<Prepared>(kernel), values_.size()};
  op.n_in = static_cast<uint32_t>(in.size());
  op.n_out = static_cast<uint32_t>(out.size());
  op.n_written = writes.count;
  op.phase = ctx.phase;
  op.is_pack = kernel->kind == &kind_of<Repack>;
  for (const In& i : in) hold(i.value);
  for (const auto& y : out) {
    y->number = static_cast<uint32_t>(made_.size());
    made_.push_back(y.get());
    hold(y.get());
  }
  for (const In& i : plain.subspan(writes.first, writes.count)) {
    hold(i.value);
    i.value->bump_version();
    raised_.push_back(i.value);
  }
  ops.push_back(std::move(op));
}

void Recording::hold(Value* v) {
  values_.emplace_back(v);
  v->recorded += v->is_symbolic();
}

Ref<Value> Recording::find_pack(Value* plain, Layout pack) {
  const auto [first, last] = packs_.equal_range(plain->root());
  for (auto p = first; p != last; ++p) {
    if (p->second.version == plain->version() && p->second.packed->spec.layout == pack)
      return Ref<Value>(p->second.packed);
  }
  return {};
}

void Recording::keep_pack(Value* plain, const Ref<Value>& packed) {
  packs_.emplace(plain->root(), Pack{plain->version(), packed.get()});
  hold(packed.get());
  hold(plain);  // its root's address is the key
}

void Recording::prune(const TensorList& outputs) {
  std::vector<bool> needed(made_.size());
  const auto need = [&](Value* v) {
    if (has_made(v->root())) needed[v->root()->number] = true;
  };
  const auto is_needed = [&](const Ref<Value>& v) { return has_made(v->root()) && needed[v->root()->number]; };
  for (const Tensor& t : outputs) need(t.value.get());
  size_t kept = ops.size();
  for (size_t i = ops.size(); i-- > 0;) {
    bool is_live = false;
    for (const auto& v : written(ops[i]))
      is_live |= !v->root()->is_symbolic() || is_needed(v);  // its own live by who reads them
    for (const auto& v : out(ops[i])) is_live |= is_needed(v);
    if (!is_live) continue;
    for (const auto& v : in(ops[i])) need(v.get());
    for (const auto& v : written(ops[i])) need(v.get());
    if (--kept != i) ops[kept] = std::move(ops[i]);
  }
  ops.erase(ops.begin(), ops.begin() + static_cast<std::ptrdiff_t>(kept));
}

}  // namespace plumb::detail
