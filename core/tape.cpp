#include "core/tape.h"

#include <new>

namespace plumb {

Ref<Node> Node::make_leaf() {
  auto* n = new (ctx.pool.get(sizeof(Node))) Node;
  n->bytes = sizeof(Node);
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

}  // namespace plumb
