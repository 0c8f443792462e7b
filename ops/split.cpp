#include "ops/split.h"

#include <numeric>

#include "ops/concat.h"
#include "ops/fill.h"
#include "ops/slice.h"

namespace plumb {

TensorList split(const Tensor& x, std::span<const int64_t> extents, int dim) {
  PLUMB_CHECK(x, "split: x is an empty tensor");
  const Shape& all = x.shape();
  PLUMB_CHECK(dim >= -x.rank() && dim < x.rank(), "split: dimension {} of a tensor {} does not exist", dim, all);
  if (dim < 0) dim += x.rank();
  int64_t sum = 0;
  for (const int64_t extent : extents) {
    PLUMB_CHECK(extent >= 0 && extent <= all[dim] - sum,
                "split: the parts must be of extents that add up to the {} of dimension {} of a tensor {}", all[dim],
                dim, all);
    sum += extent;
  }
  PLUMB_CHECK(sum == all[dim] && !extents.empty(),
              "split: the parts' extents add up to {}, and dimension {} of a tensor {} has {}", sum, dim, all,
              all[dim]);
  TensorList parts;
  static constexpr int64_t kZeros[kMaxRank] = {};
  Shape begin(std::span(kZeros, static_cast<size_t>(x.rank())));
  {
    const NoGrad together;
    for (const int64_t extent : extents) {
      parts.push_back(slice(x, begin, all.with(dim, extent)).detached());
      begin = begin.with(dim, begin[dim] + extent);
    }
  }
  detail::PoolVector<TensorSpec> specs;
  for (const Tensor& part : parts) specs.push_back(part.spec());
  record_outputs<1>(parts, {&x}, [specs, dim, device = x.device()](std::span<const Tensor> dy, const Needs<1>&) {
    const DeviceScope scope(device);
    TensorList whole;
    for (size_t i = 0; i < dy.size(); ++i) whole.push_back(dy[i] ? dy[i] : zeros(specs[i]));
    return std::array<Tensor, 1>{concat(whole, dim)};
  });
  return parts;
}

}  // namespace plumb
