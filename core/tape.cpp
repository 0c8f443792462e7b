#include "core/tape.h"

#include <new>
#include <string_view>

namespace plumb::detail {

const char* op_name(const char* caller) {
  if (std::string_view(caller) != "operator()") return caller;
  return "an op without a name (give it one as the last argument of wrt, record_joint or SavedTensor)";
}

Ref<Node> Node::make_leaf(const TensorSpec& spec) {
  auto* n = new (ctx.pool.get(sizeof(Node))) Node;
  n->bytes = sizeof(Node);
  n->spec = spec;
  return Ref<Node>::adopt(n);
}

void Node::destroy(Node* n) {
  n->next_dying_ = std::exchange(ctx.dying, n);
  if (ctx.sweeping) return;
  ctx.sweeping = true;
  while (Node* dying = ctx.dying) {
    ctx.dying = dying->next_dying_;
    const size_t bytes = dying->bytes;
    dying->~Node();
    ctx.pool.put(dying, bytes);
  }
  ctx.sweeping = false;
}

void GradientSink::give(Node* to, Tensor gradient, const char* op) {
  if (!gradient) return;
  PLUMB_CHECK(gradient.spec() == to->spec,
              "{}: its backward gave a gradient {} for an input {}; they must be of one spec", op_name(op),
              gradient.spec(), to->spec);
  add(to, std::move(gradient));
}

}  // namespace plumb::detail
