// Batch normalisation in training by cuDNN's graphs, for images whose channels it takes in pieces of 16 bytes: forward
// also with a ReLU behind it, or a sum and a ReLU, but not with a sum alone.
#include "kernels/cuda/vendor/cudnn_plan.h"
#include "kernels/cuda/vendor/offers.h"

namespace plumb::cuda {
namespace {

enum Id : int64_t {
  kX = 1,
  kScale,
  kShift,
  kMean,
  kInvStd,
  kOldMean,
  kOldVariance,
  kNewMean,
  kNewVariance,
  kNormalised,
  kAddend,
  kSum,
  kY,
  kDy,
  kDx,
  kDscale,
  kDshift,
  kEpsilon,
  kMomentum
};
constexpr cudnnBackendNormMode_t kBatchNorm = CUDNN_BATCH_NORM;

TensorSpec of_channels(const TensorSpec& x) { return {Shape{1, x.shape[1], 1, 1}, DType::kF32, x.layout}; }
Descriptor number(int64_t id) { return tensor(TensorSpec(Shape{1, 1, 1, 1}), id, Storage::kByValue); }

bool takes(const TensorSpec& x, const BatchNormParams& p) {
  if (x.rank() != 4 || x.layout == Layout::kChwn || p.train == 0) return false;
  if (x.dtype != DType::kF32 && x.dtype != DType::kBf16) return false;
  const int64_t piece = 16 / static_cast<int64_t>(size_of(x.dtype)), per_channel = x.shape[0] * x.shape[2] * x.shape[3];
  return x.shape[1] % piece == 0 && x.shape[1] > 0 && per_channel > 1;
}

}  // namespace

void offer_cudnn_batch_norm(const Problem<BatchNormParams>& p, Candidates& candidates) {
  const Target* const target = target_of(p.device);
  const TensorSpec& x = p.in[0];
  // The running variance of its training step is that of the unbiased estimate.
  if (!target || !takes(x, p.params) || p.params.unbiased_running_variance == 0) return;
  const bool adds = p.in.size() == 6, has_relu = p.params.activation == Activation::kRelu;
  if (adds && !has_relu) return;
  const TensorSpec c = of_channels(x), wide = x.with(DType::kF32);
  const Descriptor y = tensor(x, kY), normalised = tensor(wide, kNormalised, Storage::kNone),
                   sum = tensor(wide, kSum, Storage::kNone);
  const cudnnBackendNormFwdPhase_t training = CUDNN_NORM_FWD_TRAINING;
  std::vector<Descriptor> operations;
  Descriptor& op = operations.emplace_back(CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR);
  op.set(CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE, 1, &kBatchNorm);
  op.set(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE, 1, &training);
  op.set(CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, tensor(x, kX));
  op.set(CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, tensor(c, kMean));
  op.set(CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC, tensor(c, kInvStd));
  op.set(CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, tensor(c, kScale));
  op.set(CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, tensor(c, kShift));
  op.set(CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, number(kEpsilon));
  op.set(CUDNN_ATTR_OPERATION_NORM_FWD_EXP_AVG_FACTOR_DESC, number(kMomentum));
  op.set(CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC, tensor(c, kOldMean));
  op.set(CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_VAR_DESC, tensor(c, kOldVariance));
  op.set(CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC, tensor(c, kNewMean));
  op.set(CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC, tensor(c, kNewVariance));
  op.set(CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, has_relu ? normalised : y);
  op.finalize("a batch normalisation of this shape");
  std::vector<Binding> bindings = {in(0, kX),
                                   in(1, kScale),
                                   in(2, kShift),
                                   in(3, kOldMean),
                                   in(4, kOldVariance),
                                   in(3, kNewMean),  // in place, channel by channel
                                   in(4, kNewVariance),
                                   out(0, kY),
                                   out(1, kMean),
                                   out(2, kInvStd),
                                   value(static_cast<float>(double{p.params.epsilon}), kEpsilon),
                                   value(static_cast<float>(double{p.params.momentum}), kMomentum)};
  if (adds) {
    const Descriptor addend = tensor(x, kAddend);
    operations.push_back(pointwise(CUDNN_POINTWISE_ADD, normalised, &addend, sum));
    bindings.push_back(in(5, kAddend));
  }
  if (has_relu) operations.push_back(pointwise(CUDNN_POINTWISE_RELU_FWD, adds ? sum : normalised, nullptr, y));
  offer_plans(*target, std::move(operations), bindings, x.dtype == DType::kF32, p.search, candidates);
}

void offer_cudnn_batch_norm_backward(const Problem<BatchNormParams>& p, Candidates& candidates) {
  const Target* const target = target_of(p.device);
  const TensorSpec& x = p.in[1];
  if (!target || !takes(x, p.params) || p.out.size() < 3) return;  // it always makes dx
  const TensorSpec c = of_channels(x);
  std::vector<Descriptor> operations;
  Descriptor& op = operations.emplace_back(CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR);
  op.set(CUDNN_ATTR_OPERATION_NORM_BWD_MODE, CUDNN_TYPE_NORM_MODE, 1, &kBatchNorm);
  op.set(CUDNN_ATTR_OPERATION_NORM_BWD_XDESC, tensor(x, kX));
  op.set(CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC, tensor(c, kMean));
  op.set(CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC, tensor(c, kInvStd));
  op.set(CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC, tensor(x, kDy));
  op.set(CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC, tensor(c, kScale));
  op.set(CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC, tensor(c, kDscale));
  op.set(CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC, tensor(c, kDshift));
  op.set(CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC, tensor(x, kDx));
  op.finalize("the gradient of a batch normalisation of this shape");
  const std::vector<Binding> bindings = {in(0, kDy),     in(1, kX),       in(2, kScale),   in(3, kMean),
                                         in(4, kInvStd), out(0, kDscale), out(1, kDshift), out(2, kDx)};
  offer_plans(*target, std::move(operations), bindings, x.dtype == DType::kF32, p.search, candidates);
}

}  // namespace plumb::cuda
