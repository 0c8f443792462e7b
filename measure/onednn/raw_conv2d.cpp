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

// `as_they_are`: the activations keep their layouts. `convert`: operands in other formats are converted in every run.
std::unique_ptr<RawRun> conv2d(const RawConv2d& c, algorithm how, bool as_they_are, bool convert) {
  const memory::desc b = raw::bias(c.with_bias, c.y.shape[1], c.y.dtype);
  const raw::Descs own{cpu::dnnl_desc(c.x), weight(c, false), b, cpu::dnnl_desc(c.y)};
  const raw::Descs asked{as_they_are ? own.x : cpu::dnnl_any(c.x), weight(c, true), b,
                         as_they_are ? own.y : cpu::dnnl_any(c.y)};
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
  if (kind == "direct") return raw::declining([&] { return conv2d(c, algorithm::convolution_direct, true, true); });
  if (kind == "blocked") return raw::declining([&] { return conv2d(c, algorithm::convolution_direct, false, true); });
  if (kind == "winograd")
    return raw::declining([&] { return conv2d(c, algorithm::convolution_winograd, false, true); });
  return nullptr;
}

std::unique_ptr<RawRun> raw_best(const RawConv2d& c) {
  std::vector<raw::Make> makes;
  for (const algorithm how :
       {algorithm::convolution_auto, algorithm::convolution_direct, algorithm::convolution_winograd}) {
    makes.push_back([&c, how] { return conv2d(c, how, false, false); });
  }
  RawConv2d nhwc = c;  // also try NHWC, since oneDNN's own choice is not always its fastest
  nhwc.x.layout = nhwc.y.layout = Layout::kNhwc;
  makes.push_back([nhwc] { return conv2d(nhwc, algorithm::convolution_direct, true, false); });
  return raw::fastest(makes);
}

}  // namespace plumb::measure
