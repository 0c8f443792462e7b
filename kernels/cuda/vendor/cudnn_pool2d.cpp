// Pooling by cuDNN's graphs. Not the maxima with their positions: cuDNN does not say what its own positions mean, and
// its backward takes none in NCHW. Nor gradients of averages: its only engine wants the tensors of the forward pass.
#include "kernels/cuda/vendor/cudnn_plan.h"
#include "kernels/cuda/vendor/offers.h"

namespace plumb::cuda {
namespace {

enum Id : int64_t { kX = 1, kY };

Descriptor resample(PoolOperation o, const Pool2dParams& p) {
  const cudnnResampleMode_t mode = o == PoolOperation::kMaxForward ? CUDNN_RESAMPLE_MAXPOOL
                                   : p.count_include_pad != 0      ? CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING
                                                                   : CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING;
  const cudnnPaddingMode_t padding = o == PoolOperation::kMaxForward ? CUDNN_NEG_INF_PAD : CUDNN_ZERO_PAD;
  const cudnnDataType_t compute = CUDNN_DATA_FLOAT;
  const cudnnNanPropagation_t nan = CUDNN_PROPAGATE_NAN;
  const cudnnFraction_t window[] = {{p.kernel[0], 1}, {p.kernel[1], 1}},
                        stride[] = {{p.stride[0], 1}, {p.stride[1], 1}};
  const cudnnFraction_t before[] = {{p.padding[0], 1}, {p.padding[2], 1}};
  const cudnnFraction_t after[] = {{p.padding[1], 1}, {p.padding[3], 1}};
  Descriptor d(CUDNN_BACKEND_RESAMPLE_DESCRIPTOR);
  d.set(CUDNN_ATTR_RESAMPLE_MODE, CUDNN_TYPE_RESAMPLE_MODE, 1, &mode);
  d.set(CUDNN_ATTR_RESAMPLE_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
  d.set(CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, 2);
  d.set(CUDNN_ATTR_RESAMPLE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, 1, &nan);
  d.set(CUDNN_ATTR_RESAMPLE_PADDING_MODE, CUDNN_TYPE_PADDING_MODE, 1, &padding);
  d.set(CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, CUDNN_TYPE_FRACTION, 2, window);
  d.set(CUDNN_ATTR_RESAMPLE_STRIDES, CUDNN_TYPE_FRACTION, 2, stride);
  d.set(CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, CUDNN_TYPE_FRACTION, 2, before);
  d.set(CUDNN_ATTR_RESAMPLE_POST_PADDINGS, CUDNN_TYPE_FRACTION, 2, after);
  d.finalize("a pooling");
  return d;
}

// What an H100 found wrong with cuDNN 9.19: in bf16 engine 3 reads and writes past the end, and where padding differs
// from side to side engine 1 divides averages by another number.
bool is_wrong(const EngineConfig& c, PoolOperation o, DType dtype, const Padding2d& padding) {
  return (c.engine == 3 && dtype == DType::kBf16) ||
         (c.engine == 1 && o == PoolOperation::kAvgForward && !padding.is_even());
}

}  // namespace

void offer_cudnn_pool2d(PoolOperation o, const Problem<Pool2dParams>& p, Candidates& candidates) {
  const Target* const target = target_of(p.device);
  const TensorSpec &from = p.in[0], &to = p.out[0];
  if (!target || (from.dtype != DType::kF32 && from.dtype != DType::kBf16) || from.layout == Layout::kChwn) return;
  if (from.numel() == 0 || to.numel() == 0) return;  // descriptors have no extents of 0
  const Descriptor x = tensor(from, kX), y = tensor(to, kY), window = resample(o, p.params);
  std::vector<Descriptor> operations;
  Descriptor& op = operations.emplace_back(CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR);
  op.set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, x);
  op.set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, y);
  op.set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC, window);
  op.finalize("a pooling of these shapes");
  const auto leaves_out = [&](const EngineConfig& c) { return is_wrong(c, o, from.dtype, p.params.padding); };
  offer_plans(*target, std::move(operations), {in(0, kX), out(0, kY)}, from.dtype == DType::kF32, p.search, candidates,
              nullptr, leaves_out);
}

}  // namespace plumb::cuda
