#include "kernels/cpu/normalization/batch_norm_onednn.h"

#include <cmath>

#include "kernels/cpu/onednn/normalizing.h"

namespace plumb::cpu {
namespace {

using dnnl::normalization_flags;
using dnnl::prop_kind;

// Flags for gamma and beta, and for given statistics if they are not computed from the batch.
normalization_flags flags_of(const BatchNormParams& p) {
  const auto affine = normalization_flags::use_scale | normalization_flags::use_shift;
  return p.train ? affine : affine | normalization_flags::use_global_stats;
}

// oneDNN's implementations other than its compiled kernels take several times as long as ours, and lose digits in sums.
bool is_taken(const dnnl::primitive_desc_base& pd) {
  return std::string_view(pd.impl_info_str()).find("jit") != std::string_view::npos;
}

constexpr const char* kPrefix = "onednn:batch_norm:";

// oneDNN computes the mean and variance of the batch; a pass over the channels computes the remaining statistics.
std::unique_ptr<Kernel> training(std::unique_ptr<Kernel> kernel, const BatchNormParams& p, int64_t channels,
                                 int64_t per_channel) {
  const auto n = static_cast<double>(per_channel);
  return wrap_kernel(std::move(kernel), "", "", [=](const Kernel& inner, const Launch& l) {
    inner.run(l);
    auto *mean = static_cast<float*>(l.out[1]), *inv_std = static_cast<float*>(l.out[2]);
    auto *running_mean = static_cast<float*>(l.in[3]), *running_var = static_cast<float*>(l.in[4]);
    const auto update = [&](float& running, double batch) {
      running = static_cast<float>((1 - p.momentum) * static_cast<double>(running) + p.momentum * batch);
    };
    for (int64_t c = 0; c < channels; ++c) {
      const double var = static_cast<double>(inv_std[c]);
      inv_std[c] = static_cast<float>(1 / std::sqrt(var + p.epsilon));
      update(running_mean[c], static_cast<double>(mean[c]));
      update(running_var[c], p.unbiased_running_variance ? var * n / (n - 1) : var);
    }
  });
}

// Derives from inv_std a variance to be used with an epsilon of 0.
std::unique_ptr<Kernel> training_backward(std::unique_ptr<Kernel> kernel, size_t var_at, int64_t channels) {
  return wrap_kernel(std::move(kernel), "", "", [=](const Kernel& inner, const Launch& l) {
    const auto* inv_std = static_cast<const float*>(l.in[4]);
    auto* var = reinterpret_cast<float*>(static_cast<char*>(l.workspace) + var_at);
    for (int64_t c = 0; c < channels; ++c) var[c] = 1 / (inv_std[c] * inv_std[c]);
    inner.run(l);
  });
}

}  // namespace

std::unique_ptr<Kernel> onednn_batch_norm_forward(const Problem<BatchNormParams>& p) {
  const TensorSpec &x = p.in[0], &parameter = p.in[1];
  if (!dnnl_has(x.dtype) || x.numel() == 0) return nullptr;
  const bool train = p.params.train != 0;
  const MemoryDesc data = dnnl_desc(x), channels = dnnl_desc(parameter);
  const auto pd = batch_norm_desc(train ? prop_kind::forward_training : prop_kind::forward_inference, data,
                                  static_cast<float>(p.params.epsilon), flags_of(p.params));
  if (!is_taken(pd)) return nullptr;
  const DnnlArg::From from = train ? DnnlArg::kOut : DnnlArg::kIn;
  const size_t mean = train ? 1 : 3;
  auto kernel = single_primitive<dnnl::batch_normalization_forward>(pd,
                                                                    {{DNNL_ARG_SRC, data, DnnlArg::kIn, 0},
                                                                     {DNNL_ARG_SCALE, channels, DnnlArg::kIn, 1},
                                                                     {DNNL_ARG_SHIFT, channels, DnnlArg::kIn, 2},
                                                                     {DNNL_ARG_MEAN, channels, from, mean},
                                                                     {DNNL_ARG_VARIANCE, channels, from, mean + 1},
                                                                     {DNNL_ARG_DST, data, DnnlArg::kOut, 0}},
                                                                    kPrefix);
  if (!train) return kernel;
  return training(std::move(kernel), p.params, parameter.numel(), x.numel() / parameter.numel());
}

std::unique_ptr<Kernel> onednn_batch_norm_backward(const Problem<BatchNormParams>& p) {
  const TensorSpec &x = p.in[1], &parameter = p.in[2];
  if (!dnnl_has(x.dtype) || x.numel() == 0 || p.out.size() != 3) return nullptr;
  const bool train = p.params.train != 0;
  const MemoryDesc data = dnnl_desc(x), channels = dnnl_desc(parameter);
  const float epsilon = train ? 0 : static_cast<float>(p.params.epsilon);
  const normalization_flags flags = flags_of(p.params);
  const auto forward = batch_norm_desc(prop_kind::forward_training, data, epsilon, flags);
  const auto pd = batch_norm_backward_desc(forward, data, epsilon, flags);
  if (!is_taken(pd)) return nullptr;
  auto kernel = std::make_unique<DnnlKernel>(kPrefix + std::string(pd.impl_info_str()));
  const DnnlArg scratch = kernel->scratchpad(pd);
  DnnlArg var{DNNL_ARG_VARIANCE, channels, DnnlArg::kIn, 4};
  if (train) {
    var.from = DnnlArg::kWorkspace;
    var.at = kernel->reserve(channels.get_size());
  }
  kernel->append(dnnl::batch_normalization_backward(pd),
                 {{DNNL_ARG_DIFF_DST, data, DnnlArg::kIn, 0},
                  {DNNL_ARG_SRC, data, DnnlArg::kIn, 1},
                  {DNNL_ARG_SCALE, channels, DnnlArg::kIn, 2},
                  {DNNL_ARG_SHIFT, backward_shift_desc(channels), DnnlArg::kIn, 2},
                  {DNNL_ARG_MEAN, channels, DnnlArg::kIn, 3},
                  var,
                  {DNNL_ARG_DIFF_SCALE, channels, DnnlArg::kOut, 0},
                  {DNNL_ARG_DIFF_SHIFT, channels, DnnlArg::kOut, 1},
                  {DNNL_ARG_DIFF_SRC, data, DnnlArg::kOut, 2},
                  scratch});
  if (!train) return kernel;
  return training_backward(std::move(kernel), var.at, parameter.numel());
}

}  // namespace plumb::cpu
