// Convolution by cuDNN's graphs: three directions, forward with bias and ReLU in one where there is a plan for it.
#include <algorithm>

#include "core/block.h"
#include "kernels/cuda/vendor/cudnn_plan.h"
#include "kernels/cuda/vendor/offers.h"

namespace plumb::cuda {
namespace {

enum Id : int64_t { kX = 1, kW, kY, kBias, kProduct, kBiased };

Descriptor convolution(const Conv2dParams& p, const Shape& x) {
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  const cudnnDataType_t compute = CUDNN_DATA_FLOAT;
  const int64_t before[] = {p.padding[0], p.padding[2]}, after[] = {p.padding[1], p.padding[3]};
  // A stride past the image is as good as one to its end.
  const auto stride_of = [&](int axis) {
    return std::min<int64_t>(p.stride[axis], x[2 + axis] + p.padding[2 * axis] + p.padding[2 * axis + 1]);
  };
  const int64_t stride[] = {stride_of(0), stride_of(1)}, dilation[] = {p.dilation[0], p.dilation[1]};
  Descriptor d(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  d.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 2);
  d.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
  d.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  d.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, before);
  d.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, after);
  d.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, dilation);
  d.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, stride);
  d.finalize("a convolution");
  return d;
}

// The three operations and their attributes.
struct Operation {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t x, w, y, convolution, alpha, beta;
};
constexpr Operation kOperations[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA}};

std::vector<Binding> bindings_of(ConvDirection d) {
  switch (d) {
    case ConvDirection::kForward: return {in(0, kX), in(1, kW), out(0, kY)};
    case ConvDirection::kBackwardInput: return {in(0, kY), in(1, kW), out(0, kX)};
    case ConvDirection::kBackwardWeight: return {in(0, kY), in(1, kX), out(0, kW)};
  }
  return {};
}

std::shared_ptr<void> zeros_of(size_t bytes, Device device) {
  const std::vector<char> zeros(bytes);
  std::shared_ptr<void> there = detail::block_of(bytes, MemoryClass::kWorkspace, device);
  detail::copy_bytes(there.get(), device, zeros.data(), {}, bytes);
  return there;
}

// What an H100 found wrong with cuDNN 9.19, whose support checks pass it all. Gradients by the weights: where padding
// differs from side to side engines 1 and 20 sum up something else, and where a window is not 3x3 engine 17 leaves
// three digits of f32. In bf16 and NCHW engines 70 (by the weights) and 78 (by the input) read past the end of some
// images. By depthwise weights engine 18 gives NaN in f32, and engine 47 sums bf16 in parts that it rounds (on an
// H200).
bool is_wrong(const EngineConfig& c, ConvDirection direction, const ConvSpecs& s, const Padding2d& padding) {
  const bool is_bf16_nchw = s.x.dtype == DType::kBf16 && s.x.layout == Layout::kNchw;
  if (direction == ConvDirection::kBackwardInput) return c.engine == 78 && is_bf16_nchw;
  if (direction != ConvDirection::kBackwardWeight) return false;
  const bool is_grouped = s.w.shape[1] != s.x.shape[1];
  if (is_grouped && (c.engine == 18 || (c.engine == 47 && s.x.dtype == DType::kBf16))) return true;
  const bool is_3x3 = s.w.shape[2] == 3 && s.w.shape[3] == 3;
  return (!padding.is_even() && (c.engine == 1 || c.engine == 20)) || (!is_3x3 && c.engine == 17) ||
         (is_bf16_nchw && c.engine == 70);
}

}  // namespace

void offer_cudnn_conv2d(ConvDirection direction, const ConvSpecs& s, const Problem<Conv2dParams>& p,
                        Candidates& candidates) {
  const Target* const target = target_of(p.device);
  if (!target || (s.x.dtype != DType::kF32 && s.x.dtype != DType::kBf16)) return;
  if (s.x.numel() == 0 || s.w.numel() == 0 || s.y.numel() == 0) return;  // descriptors have no extents of 0
  const Operation& o = kOperations[static_cast<int>(direction)];
  const Descriptor x = tensor(s.x, kX), w = tensor(s.w, kW), y = tensor(s.y, kY),
                   window = convolution(p.params, s.x.shape);
  const float one = 1, zero = 0;
  std::vector<Descriptor> operations;
  const auto convolve_to = [&](const Descriptor& to) {
    Descriptor& op = operations.emplace_back(o.type);
    op.set(o.x, x);
    op.set(o.w, w);
    op.set(o.y, to);
    op.set(o.convolution, window);
    op.set(o.alpha, CUDNN_TYPE_FLOAT, 1, &one);
    op.set(o.beta, CUDNN_TYPE_FLOAT, 1, &zero);
    op.finalize("a convolution of these shapes");
  };
  std::vector<Binding> bindings = bindings_of(direction);
  const bool has_bias = p.in.size() == 3, has_relu = p.params.activation == Activation::kRelu;
  std::shared_ptr<void> zeros;
  if (!has_bias && !has_relu) {
    convolve_to(y);
  } else {  // what lies between the operations is f32, and never in memory
    const TensorSpec wide = s.y.with(DType::kF32), of_channels(Shape{1, s.y.shape[1], 1, 1}, s.y.dtype, s.y.layout);
    const Descriptor product = tensor(wide, kProduct, Storage::kNone), biased = tensor(wide, kBiased, Storage::kNone);
    const Descriptor bias = tensor(of_channels, kBias);
    convolve_to(product);
    operations.push_back(pointwise(CUDNN_POINTWISE_ADD, product, &bias, has_relu ? biased : y));
    if (has_relu) operations.push_back(pointwise(CUDNN_POINTWISE_RELU_FWD, biased, nullptr, y));
    if (has_bias) {
      bindings.push_back(in(2, kBias));
    } else {  // there is no plan for a convolution with ReLU alone
      bindings.push_back({Binding::kZeros, 0, kBias, 0});
      zeros = zeros_of(of_channels.bytes(), p.device);
    }
  }
  const bool is_strict = s.x.dtype == DType::kF32 && p.math != MathMode::kTf32;
  const auto leaves_out = [&](const EngineConfig& c) { return is_wrong(c, direction, s, p.params.padding); };
  offer_plans(*target, std::move(operations), bindings, is_strict, p.search, candidates, std::move(zeros), leaves_out);
}

}  // namespace plumb::cuda
