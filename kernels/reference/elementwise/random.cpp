#include "dispatch/random_fill.h"

#include "kernels/reference/elements.h"

namespace plumb {

// Philox and the distributions are defined once, and held against published numbers; this is in one piece.
void RandomFill::reference(const Problem<Params>& p, Candidates& candidates) {
  reference::offer(kName, candidates, [y = p.out[0], params = p.params](const Launch& l) {
    detail::fill_random(l.out[0], y.dtype, 0, y.numel(), params.distribution(), params.seed);
  });
}

}  // namespace plumb
