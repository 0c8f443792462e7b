#include "graph/recording.h"

#include <algorithm>
#include <unordered_set>

#include "kernels/pack.h"

namespace plumb::detail {

void Recording::append(Prepared* kernel, Inputs in, std::span<const Ref<Value>> out, Writes writes) {
  RecordedOp op{Ref<Prepared>(kernel), {}, {out.begin(), out.end()}, writes, ctx.phase};
  for (const In& i : in) op.in.emplace_back(i.value);
  op.is_pack = kernel->kind == &detail::kind_of<Repack>;
  ops.push_back(std::move(op));
}

Ref<Value> Recording::find_pack(Value* plain, Layout pack) {
  for (const Pack& p : packs_) {
    if (p.plain->root() == plain->root() && p.version == plain->version() && p.packed->spec.layout == pack)
      return p.packed;
  }
  return {};
}

void Recording::keep_pack(Value* plain, const Ref<Value>& packed) {
  packs_.push_back({Ref<Value>(plain), plain->version(), packed});
}

uint32_t Recording::references(const Value* v) const {
  uint32_t count = 0;
  for (const RecordedOp& op : ops) {
    for (const auto* list : {&op.in, &op.out}) {
      for (const auto& each : *list) count += each.get() == v;
    }
  }
  for (const Pack& p : packs_) count += (p.plain.get() == v) + (p.packed.get() == v);
  return count;
}

void prune(std::vector<RecordedOp>& ops, const TensorList& outputs) {
  std::unordered_set<Value*> needed;
  for (const Tensor& t : outputs) needed.insert(t.value->root());
  std::vector<RecordedOp> live;
  for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
    bool is_live = false;
    for (uint32_t i = op->writes.first; i < op->writes.first + op->writes.count; ++i) {
      Value* root = op->in[i]->root();  // a value of the capture's own lives by who reads it
      is_live |= !root->is_symbolic() || needed.contains(root);
    }
    for (const auto& v : op->out) is_live |= needed.contains(v->root());
    if (!is_live) continue;
    for (const auto& v : op->in) needed.insert(v->root());
    live.push_back(std::move(*op));
  }
  std::reverse(live.begin(), live.end());
  ops = std::move(live);
}

size_t plan_memory(std::vector<Lifetime>& values) {
  std::vector<Lifetime*> by_size;
  for (Lifetime& v : values) by_size.push_back(&v);
  std::stable_sort(by_size.begin(), by_size.end(),
                   [](const Lifetime* a, const Lifetime* b) { return a->bytes > b->bytes; });
  std::vector<Lifetime*> placed;  // by offset
  size_t total = 0;
  for (Lifetime* v : by_size) {
    size_t at = 0;
    for (const Lifetime* p : placed) {
      if (p->first > v->last || v->first > p->last) continue;  // never alive together
      if (at + v->bytes <= p->offset) break;                   // fits in the gap before p
      at = std::max(at, p->offset + p->bytes);
    }
    v->offset = at;
    total = std::max(total, at + v->bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), v,
                                   [](const Lifetime* a, const Lifetime* b) { return a->offset < b->offset; }),
                  v);
  }
  return total;
}

}  // namespace plumb::detail
