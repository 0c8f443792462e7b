#include "dispatch/policy.h"
#include "measure/onednn/steps.h"

namespace plumb::measure {
namespace {

using dnnl::algorithm;
using raw::memory;

memory::dims weight_dims(const RawConv2d& c) {
  const Shape& s = c.w.shape;
  const int64_t g = c.params.groups;
  return g == 1 ? memory::dims{s[0], s[1], s[2], s[3]} : memory::dims{g, s[0] / g, s[1], s[2], s[3]};
}
memory::desc weight(const RawConv2d& c, bool any) {
  const auto tag = any                    ? memory::format_tag::any
                   : c.params.groups == 1 ? memory::format_tag::oihw
                                          : memory::format_tag::goihw;
  return {weight_dims(c), cpu::dnnl_dtype(c.w.dtype), tag};
}

enum class Activations { kAsTheyAre, kNhwc, kAny };

memory::desc asked_for(const TensorSpec& s, Activations a) {
  if (a == Activations::kAny) return cpu::dnnl_any(s);
  return cpu::dnnl_desc(a == Activations::kNhwc ? s.with(Layout::kNhwc) : s);
}

// `convert`: operands in other formats are converted in every run.
std::unique_ptr<RawRun> conv2d(const RawConv2d& c, algorithm how, Activations activations, bool convert) {
  const memory::desc b = raw::bias(c.with_bias, c.y.shape[1], c.y.dtype);
  const raw::Descs own{cpu::dnnl_desc(c.x), weight(c, false), b, cpu::dnnl_desc(c.y)};
  const raw::Descs asked{asked_for(c.x, activations), weight(c, true), b, asked_for(c.y, activations)};
  const Conv2dParams& p = c.params;
  const memory::dims strides{p.stride[0], p.stride[1]}, dilations{p.dilation[0] - 1, p.dilation[1] - 1},
      before{p.padding[0], p.padding[2]}, after{p.padding[1], p.padding[3]};
  using Forward = dnnl::convolution_forward;
  const auto forward =
      cpu::primitive_desc<Forward>(raw::attr_of(p.activation), dnnl::prop_kind::forward_training, how, asked.x, asked.w,
                                   asked.b, asked.y, strides, dilations, before, after);
  const auto backward = [&]<class Backward>() {
    return cpu::backward_desc<Backward>(dnnl::primitive_attr(), forward, how, asked.x, asked.w, asked.y, strides,
                                        dilations, before, after);
  };
  return raw::layer<Forward, dnnl::convolution_backward_data, dnnl::convolution_backward_weights>(
      c.direction, own, forward, backward, convert);
}

}  // namespace

std::unique_ptr<RawRun> raw_same(const RawConv2d& c, std::string_view algorithm_name) {
  const std::string kind = raw_class(algorithm_name);
  const auto made = [&](algorithm how, Activations activations) {
    return raw::declining([&] { return conv2d(c, how, activations, true); });
  };
  if (kind == "direct") return made(algorithm::convolution_direct, Activations::kAsTheyAre);
  if (kind == "blocked") return made(algorithm::convolution_direct, Activations::kAny);
  if (kind == "winograd") return made(algorithm::convolution_winograd, Activations::kAny);
  return nullptr;
}

std::unique_ptr<RawExchange> raw_best(const RawConv2d& c) {
  std::vector<raw::Make> makes;
  for (const algorithm how :
       {algorithm::convolution_auto, algorithm::convolution_direct, algorithm::convolution_winograd}) {
    makes.push_back([&c, how] { return conv2d(c, how, Activations::kAny, false); });
  }
  // Also try NHWC, since oneDNN's own choice is not always its fastest.
  makes.push_back([&c] { return conv2d(c, algorithm::convolution_direct, Activations::kNhwc, false); });
  return std::unique_ptr<RawExchange>(static_cast<raw::Steps*>(raw::fastest(makes).release()));
}

}  // namespace plumb::measure
