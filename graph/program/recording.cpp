#include "graph/program/recording.h"

#include "dispatch/pack.h"

namespace plumb::detail {

Recording::~Recording() {
  for (const auto& v : raised_) v->lower_version();
}

void Recording::append(PreparedKernel* kernel, Inputs plain, Inputs in, std::span<const Ref<Value>> out,
                       Writes writes) {
  RecordedOp op{Ref<PreparedKernel>(kernel), sources_.size()};
  op.n_in = static_cast<uint32_t>(in.size());
  op.n_out = static_cast<uint32_t>(out.size());
  op.n_written = writes.count;
  op.phase = ctx.phase;
  op.is_pack = kernel->kind == &kind_of<Repack>;
  for (const In& i : in) sources_.push_back(source_of(i.value));
  for (const auto& y : out) {
    y->number = static_cast<uint32_t>(made_.size());
    sources_.push_back(Source::made(made_.size()));
    made_.push_back({y.get(), y->spec.bytes()});
  }
  for (const In& i : plain.subspan(writes.first, writes.count)) {
    sources_.push_back(source_of(i.value));
    i.value->bump_version();
    if (!i.value->is_symbolic()) raised_.emplace_back(i.value);
  }
  ops.push_back(std::move(op));
}

Source Recording::source_of(Value* v) {
  if (has_made(v->root())) return Source::made(v->root()->number);
  if (outside.empty() || outside.back().get() != v) outside.emplace_back(v);
  return Source::outside(outside.size() - 1);
}

Ref<Value> Recording::find_pack(Value* plain, Layout pack) {
  const auto [first, last] = packs_.equal_range(plain->root());
  for (auto p = first; p != last; ++p) {
    const Pack& known = p->second;
    if (known.version == plain->version() && known.packed->spec.layout == pack && known.plain->spec == plain->spec)
      return known.packed;
  }
  return {};
}

void Recording::keep_pack(Value* plain, const Ref<Value>& packed) {
  packs_.emplace(plain->root(), Pack{Ref<Value>(plain), plain->version(), packed});
}

void Recording::prune(const TensorList& outputs) {
  std::vector<bool> needed(made_.size());
  for (const Tensor& t : outputs) {
    if (const Value* root = t.value->root(); has_made(root)) needed[root->number] = true;
  }
  const auto need = [&](Sources sources) {
    for (const Source s : sources) {
      if (s.is_made()) needed[s.index()] = true;
    }
  };
  const auto is_needed = [&](Source s) { return s.is_made() && needed[s.index()]; };
  size_t kept = ops.size();
  for (size_t i = ops.size(); i-- > 0;) {
    bool is_live = false;
    for (const Source s : written(ops[i])) is_live |= !s.is_made() || is_needed(s);  // made values: if read later
    for (const Source s : out(ops[i])) is_live |= is_needed(s);
    if (!is_live) continue;
    need(in(ops[i]));
    need(written(ops[i]));
    if (--kept != i) ops[kept] = std::move(ops[i]);
  }
  ops.erase(ops.begin(), ops.begin() + static_cast<std::ptrdiff_t>(kept));
}

}  // namespace plumb::detail
