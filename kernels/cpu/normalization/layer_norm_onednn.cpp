#include "kernels/cpu/normalization/layer_norm_onednn.h"

#include <cmath>

#include "kernels/cpu/onednn/normalizing.h"
#include "kernels/cpu/parallel.h"

namespace plumb::cpu {
namespace {

using dnnl::normalization_flags;
using dnnl::prop_kind;
using plumb::detail::LayerNormRows;

constexpr const char* kPrefix = "onednn:layer_norm:";
constexpr int64_t kGrainOfStatistics = 16 << 10;

// What the primitive sees: a matrix, a number for each row, and one for each column.
struct Descs {
  MemoryDesc data, rows, columns;
  Descs(const TensorSpec& x, const LayerNormRows& v)
      : data(dnnl_desc(TensorSpec(Shape{v.rows, v.columns}, x.dtype))),
        rows(dnnl_desc(TensorSpec(Shape{v.rows}, DType::kF32))),
        columns(dnnl_desc(TensorSpec(Shape{v.columns}, DType::kF32))) {}
};

bool is_taken(const TensorSpec& x) { return x.dtype != DType::kF64 && dnnl_has(x.dtype) && x.numel() > 0; }

}  // namespace

std::unique_ptr<Kernel> onednn_layer_norm_forward(const Problem<LayerNormParams>& p) {
  if (!is_taken(p.in[0])) return nullptr;
  const LayerNormRows v(p.in[0], p.params);
  const Descs descs(p.in[0], v);
  const bool has_w = p.in.size() > 1, has_b = p.in.size() > 2;
  normalization_flags flags = normalization_flags::none;
  if (has_w) flags |= normalization_flags::use_scale;
  if (has_b) flags |= normalization_flags::use_shift;
  const auto pd =
      layer_norm_desc(prop_kind::forward_training, descs.data, descs.rows, static_cast<float>(p.params.epsilon), flags);
  auto kernel = single_primitive<dnnl::layer_normalization_forward>(
      pd,
      {{DNNL_ARG_SRC, descs.data, DnnlArg::kIn, 0},
       {DNNL_ARG_SCALE, has_w ? descs.columns : MemoryDesc(), DnnlArg::kIn, 1},
       {DNNL_ARG_SHIFT, has_b ? descs.columns : MemoryDesc(), DnnlArg::kIn, 2},
       {DNNL_ARG_MEAN, descs.rows, DnnlArg::kOut, 1},
       {DNNL_ARG_VARIANCE, descs.rows, DnnlArg::kOut, 2},
       {DNNL_ARG_DST, descs.data, DnnlArg::kOut, 0}},
      kPrefix);
  if (!kernel) return nullptr;
  return wrap_kernel(std::move(kernel), "", "",
                     [rows = v.rows, epsilon = double{p.params.epsilon}](const Kernel& inner, const Launch& l) {
                       inner.run(l);
                       auto* inv_std = static_cast<float*>(l.out[2]);  // as yet the variance
                       parallel_for(rows, kGrainOfStatistics, [=](int64_t begin, int64_t end) {
                         for (int64_t i = begin; i < end; ++i)
                           inv_std[i] = static_cast<float>(1 / std::sqrt(static_cast<double>(inv_std[i]) + epsilon));
                       });
                     });
}

std::unique_ptr<Kernel> onednn_layer_norm_backward(const Problem<LayerNormParams>& p) {
  const plumb::detail::LayerNormGradients wanted(p);
  if (!is_taken(p.in[1]) || !wanted.needs_dx) return nullptr;
  const LayerNormRows v(p.in[1], p.params);
  const Descs descs(p.in[1], v);
  const MemoryDesc parameter = wanted.has_w ? descs.columns : MemoryDesc(),
                   of_dw = wanted.needs_dw ? descs.columns : MemoryDesc();
  normalization_flags flags = normalization_flags::none;
  if (wanted.has_w) flags |= normalization_flags::use_scale;
  if (wanted.needs_dw) flags |= normalization_flags::use_shift;
  const auto hint = layer_norm_desc(prop_kind::forward_training, descs.data, descs.rows, 0, flags);
  const auto pd = layer_norm_backward_desc(hint, wanted.needs_dw ? prop_kind::backward : prop_kind::backward_data,
                                           descs.data, descs.rows, 0, flags);
  if (is_plain_loops(pd)) return nullptr;
  auto kernel = std::make_unique<DnnlKernel>(kPrefix + std::string(pd.impl_info_str()));
  const DnnlArg scratch = kernel->scratchpad(pd);
  const size_t var_at = kernel->reserve(descs.rows.get_size());
  kernel->append(dnnl::layer_normalization_backward(pd),
                 {{DNNL_ARG_DIFF_DST, descs.data, DnnlArg::kIn, 0},
                  {DNNL_ARG_SRC, descs.data, DnnlArg::kIn, 1},
                  {DNNL_ARG_MEAN, descs.rows, DnnlArg::kIn, 2},
                  {DNNL_ARG_VARIANCE, descs.rows, DnnlArg::kWorkspace, var_at},
                  {DNNL_ARG_SCALE, parameter, DnnlArg::kIn, 4},
                  {DNNL_ARG_SHIFT, of_dw, DnnlArg::kIn, 4},  // wanted, in 2.x and 3.x, and not read
                  {DNNL_ARG_DIFF_SCALE, of_dw, DnnlArg::kOut, 0},
                  {DNNL_ARG_DIFF_SHIFT, of_dw, DnnlArg::kOut, 1},
                  {DNNL_ARG_DIFF_SRC, descs.data, DnnlArg::kOut, wanted.dx()},
                  scratch});
  return wrap_kernel(std::move(kernel), "", "", [rows = v.rows, var_at](const Kernel& inner, const Launch& l) {
    const auto* inv_std = static_cast<const float*>(l.in[3]);
    auto* var = reinterpret_cast<float*>(static_cast<char*>(l.workspace) + var_at);
    parallel_for(rows, kGrainOfStatistics, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) var[i] = 1 / (inv_std[i] * inv_std[i]);  // for an epsilon of 0
    });
    inner.run(l);
  });
}

}  // namespace plumb::cpu
