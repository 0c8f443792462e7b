// What one call of grad knows of the nodes behind y. It is kept here and not on the nodes: calls may nest, and threads
// may share leaves.
#pragma once

#include <algorithm>
#include <limits>

#include "../core/tape_node.h"

namespace plumb::detail {

/// The gradients that a call of grad has gathered for one node.
struct Gathered {
  Node* node;
  Ref<Value> gradient;
  Ref<Node> edge;             ///< of the gradient, for create_graph
  Ref<Value> term = {};       ///< another gradient, which is still to be added
  uint32_t wanted = 0;        ///< 1 + the index of its x in the call, or 0
  uint32_t outputs : 28 = 0;  ///< if it has several outputs: 1 + the index of their gradients; else 0
  bool is_queued : 1 = false;
  bool is_told : 1 = false;  ///< that its gradient is final
  bool is_seen : 1 = false;  ///< by find_ways
  bool has_x_behind : 1 = false;
  /// Whether its gradient is needed: it is an x, or leads to one.
  bool is_on_way() const { return wanted || has_x_behind; }
};

/// Assigns an index to each node that a call of grad has met. A few nodes are compared one by one; many are looked up
/// in a hash table.
class Places {
 public:
  Places() { all_.reserve(kFew); }
  Gathered& operator[](size_t place) { return all_[place]; }
  size_t of(Node* n) {
    if (table_.empty()) {
      for (size_t i = all_.size(); i-- > 0;) {
        if (all_[i].node == n) return i;
      }
      if (all_.size() < kFew) return add(n);
      fill_table(4 * kFew);
    }
    const size_t at = free_or_own(n);
    if (table_[at]) return table_[at] - 1;
    const size_t place = add(n);
    table_[at] = static_cast<uint32_t>(place + 1);
    if (2 * all_.size() > table_.size()) fill_table(2 * table_.size());
    return place;
  }
  Gathered& at(Node* n) { return all_[of(n)]; }
  /// Says of each node behind y whether an x is behind that, of those that are wanted by now. What was recorded when
  /// the thread's count of nodes was `since`, or before, counts as having none. Without recursion.
  void find_ways(Node* y, uint64_t since) {
    // Numbers fall along every edge: behind the oldest x there is no other.
    uint64_t oldest = std::numeric_limits<uint64_t>::max();
    for (const Gathered& x : all_) oldest = std::min(oldest, x.node->sequence);
    const uint64_t end = std::max(oldest, since);
    PoolVector<Open> open;
    PoolVector<Node*> inputs;
    const auto see = [&](size_t place) {
      all_[place].is_seen = true;
      if (all_[place].node->sequence <= end) return;
      open.push_back({place, inputs.size()});
      all_[place].node->append_inputs(inputs);
    };
    see(of(y));
    while (!open.empty()) {
      const auto [place, begin] = open.back();
      if (inputs.size() == begin) {
        open.pop_back();
        continue;
      }
      const size_t input = of(inputs.back());
      if (!all_[input].is_seen) {
        see(input);
        if (open.back().place == input) continue;  // what is behind it comes first
      }
      if (all_[input].is_on_way()) all_[place].has_x_behind = true;
      inputs.pop_back();
    }
  }

 private:
  static constexpr size_t kFew = 8;
  // A node that find_ways goes through: its inputs that are still to be seen begin there.
  struct Open {
    size_t place, begin;
  };
  size_t add(Node* n) {
    all_.push_back({n, {}, {}});
    return all_.size() - 1;
  }
  // The table entry of the node, or a free one where it may be put.
  size_t free_or_own(const Node* n) const {
    const size_t mask = table_.size() - 1;
    size_t i = (reinterpret_cast<uintptr_t>(n) >> 6) * 0x9E3779B97F4A7C15ull >> 32 & mask;
    while (table_[i] && all_[table_[i] - 1].node != n) i = (i + 1) & mask;
    return i;
  }
  void fill_table(size_t size) {
    table_.assign(size, 0);
    for (size_t i = 0; i < all_.size(); ++i) table_[free_or_own(all_[i].node)] = static_cast<uint32_t>(i + 1);
  }

  PoolVector<Gathered> all_;
  PoolVector<uint32_t> table_;  // 1 + an index, or 0; its size is a power of two
};

}  // namespace plumb::detail
