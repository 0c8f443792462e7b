#include "kernels/augment.h"

#include "kernels/reference/elements.h"

namespace plumb {

void Augment::reference(const Problem<Params>& p, Candidates& candidates) {
  const reference::Elements pixels(p.in[0]), windows(p.in[1]), table(p.in[2]), y(p.in[3]);
  reference::offer(kName, candidates, [=](const Launch& l) {
    reference::parallel_for_each_index(y.shape(), [&](const reference::Index& i) {
      const auto window = [&](int64_t k) { return windows.load_integer(l.in[1], {i[0], k}); };
      const int64_t height = y.shape()[2], width = y.shape()[3];
      const int64_t h = i[2] + window(0), w = (window(2) != 0 ? width - 1 - i[3] : i[3]) + window(1);
      const bool is_inside = h >= 0 && h < height && w >= 0 && w < width;
      const int64_t pixel = is_inside ? pixels.load_integer(l.in[0], {i[0], i[1], h, w}) : 0;
      y.store(l.in[3], i, table.load(l.in[2], {i[1], pixel}));
    });
  });
}

}  // namespace plumb
