// Convolutions as products of matrices, of which one is an image that is read through a window: nothing is unrolled in
// memory. Right for every stride, dilation, padding, group and layout.
#include "kernels/conv2d.h"

#include "kernels/cuda/conv2d/depthwise.h"
#include "kernels/cuda/conv2d/direct.h"
#include "kernels/cuda/conv2d/krsc.h"
#include "kernels/cuda/extents.h"
#include "kernels/cuda/gemm/gemm.h"
#include "kernels/cuda/vendor/offers.h"

namespace plumb {
namespace {

using cuda::Axis;
using cuda::Gemm;
using cuda::Operand;
using Params = Conv2dParams;

class Planner {
 public:
  Planner(const TensorSpec& x, const TensorSpec& w, const TensorSpec& y, const Params& p)
      : x_(x), w_(w), y_(y), p_(p), xs_(strides_of(x)), ws_(strides_of(w)), ys_(strides_of(y)) {}

  Gemm forward() const {
    Gemm g;
    g.a.row = Axis({group_oc(), weights_of_oc()});
    g.a.depth = weight_taps();
    g.a.is_depth_first = true;
    g.b = image(x_, xs_);
    g.b.row = pixels(y_, {.offset = xs_[0]}, {.h = p_.stride[0]}, {.w = p_.stride[1]});
    g.b.depth = taps(w_.shape[1], {.offset = xs_[1]}, {.h = p_.dilation[0]}, {.w = p_.dilation[1]});
    g.b.is_depth_first = is_channels_last();
    g.b.first_h = -p_.padding[0], g.b.first_w = -p_.padding[2];
    write_pixels(g, y_, ys_);
    g.batches.add(p_.groups, group_oc() * weights_of_oc(), w_.shape[1] * xs_[1], group_oc() * ys_[1], group_oc());
    g.relu = p_.activation == Activation::kRelu;
    return g;
  }

  Gemm backward_input() const {
    Gemm g;
    g.a.row = Axis({w_.shape[1], ws_[1]});
    g.a.depth = taps(group_oc(), {.offset = ws_[0]}, {.offset = ws_[2]}, {.offset = ws_[3]});
    g.a.is_depth_first = area() > 1 && !is_channels_last();
    g.b = image(y_, ys_);
    g.b.row = pixels(x_, {.offset = ys_[0]}, {.h = 1}, {.w = 1});
    g.b.depth = taps(group_oc(), {.offset = ys_[1]}, {.h = -p_.dilation[0]}, {.w = -p_.dilation[1]});
    g.b.is_depth_first = is_channels_last();
    g.b.first_h = p_.padding[0], g.b.first_w = p_.padding[2];
    g.b.step_h = p_.stride[0], g.b.step_w = p_.stride[1];
    write_pixels(g, x_, xs_);
    g.batches.add(p_.groups, group_oc() * weights_of_oc(), group_oc() * ys_[1], w_.shape[1] * xs_[1]);
    return g;
  }

  Gemm backward_weight() const {
    Gemm g;
    g.a.row = Axis({group_oc(), ys_[1]});
    g.a.depth = pixels(y_, {.offset = ys_[0]}, {.offset = ys_[2]}, {.offset = ys_[3]});
    g.a.is_depth_first = !is_channels_last();
    g.b = image(x_, xs_);
    g.b.row = taps(w_.shape[1], {.offset = xs_[1]}, {.h = p_.dilation[0]}, {.w = p_.dilation[1]});
    g.b.depth = pixels(y_, {.offset = xs_[0]}, {.h = p_.stride[0]}, {.w = p_.stride[1]});
    g.b.is_depth_first = !is_channels_last();
    g.b.first_h = -p_.padding[0], g.b.first_w = -p_.padding[2];
    g.row_stride = weights_of_oc();
    if (is_channels_last()) {  // the channel is the inner digit of a tap, and taps are neighbours or channels apart
      g.column_inner = cuda::Divisor(std::max<int64_t>(1, w_.shape[1]));
      g.column_stride[0] = ws_[1], g.column_stride[1] = ws_[3];
    } else {
      g.column_inner = cuda::Divisor(std::max<int64_t>(1, weights_of_oc()));
      g.column_stride[0] = 1;
    }
    g.batches.add(p_.groups, group_oc() * ys_[1], w_.shape[1] * xs_[1], group_oc() * weights_of_oc());
    return g;
  }

 private:
  struct Step {  // what one more along a dimension adds
    int64_t offset = 0;
    int32_t h = 0, w = 0;
  };
  static cuda::Digit digit(int64_t extent, const Step& s) { return {extent, s.offset, s.h, s.w}; }

  bool is_channels_last() const { return x_.layout == Layout::kNhwc; }
  int64_t group_oc() const { return w_.shape[0] / p_.groups; }
  int64_t area() const { return w_.shape[2] * w_.shape[3]; }
  int64_t weights_of_oc() const { return w_.shape[1] * area(); }

  // The pixels of all images, as they lie in memory.
  Axis pixels(const TensorSpec& of, const Step& n, const Step& h, const Step& w) const {
    const Shape& s = of.shape;
    if (of.layout == Layout::kChwn) return Axis(digit(s[0], n), digit(s[3], w), digit(s[2], h));
    return Axis(digit(s[3], w), digit(s[2], h), digit(s[0], n));
  }
  // The products of one sum: the places of the window in each channel. Channels are inside where they are in memory.
  Axis taps(int64_t channels, const Step& c, const Step& kh, const Step& kw) const {
    const auto c_digit = digit(channels, c), h_digit = digit(w_.shape[2], kh), w_digit = digit(w_.shape[3], kw);
    return is_channels_last() ? Axis(c_digit, w_digit, h_digit) : Axis(w_digit, h_digit, c_digit);
  }
  Axis weight_taps() const { return taps(w_.shape[1], {.offset = ws_[1]}, {.offset = ws_[2]}, {.offset = ws_[3]}); }
  static Operand image(const TensorSpec& of, const Strides& strides) {
    Operand o;
    o.is_image = true;
    o.image_h = static_cast<int32_t>(of.shape[2]), o.image_w = static_cast<int32_t>(of.shape[3]);
    o.stride_h = strides[2], o.stride_w = strides[3];
    return o;
  }
  // Columns are pixels, rows channels.
  static void write_pixels(Gemm& g, const TensorSpec& to, const Strides& strides) {
    const bool is_batch_inside = to.layout == Layout::kChwn;
    const int64_t pixels = to.shape[2] * to.shape[3];
    g.row_stride = strides[1];
    g.column_inner = cuda::Divisor(std::max<int64_t>(1, is_batch_inside ? to.shape[0] : pixels));
    g.column_stride[0] = strides[is_batch_inside ? 0 : 3];
    g.column_stride[1] = strides[is_batch_inside ? 3 : 0];
  }

  TensorSpec x_, w_, y_;
  Params p_;
  Strides xs_, ws_, ys_;
};

// The kernels of one direction: the library's on the tensors as they are, for weights in krsc where that is another
// layout, and with channels padded; then our own. Tensor cores want krsc; the engines of strict f32 would convert it
// back. The first of cuDNN's depthwise engines are compiled at run time, and in strict f32 some directions have slow
// ones only: there our own come first.
void offer_all(cuda::ConvDirection direction, const cuda::ConvSpecs& s, const Problem<Params>& p, Candidates& c) {
  const auto vendors = [&](const cuda::ConvSpecs& of, Candidates& to) {
    cuda::offer_cudnn_conv2d(direction, of, p, to);
  };
  const auto own = [&](const cuda::ConvSpecs& of, Candidates& to) { cuda::offer_direct(direction, of, p, to); };
  const bool is_weight_read = direction != cuda::ConvDirection::kBackwardWeight;
  const bool is_packed = s.x.layout == Layout::kNhwc && is_weight_read && cuda::is_packed_for_krsc(s.w);
  const bool is_narrow = s.x.dtype == DType::kBf16 || p.math == MathMode::kTf32;
  const bool is_ours_first = p.params.groups > 1 && !is_narrow;  // of one channel, cuDNN has products
  if (is_ours_first) cuda::offer_depthwise(direction, p, c);
  if (is_packed && is_narrow) cuda::offer_krsc(s, p, vendors, c);
  vendors(s, c);
  if (is_packed && !is_narrow) cuda::offer_krsc(s, p, vendors, c);
  for (const int64_t channels : cuda::padded_channels(direction, s, p.params))
    cuda::offer_padded(direction, s, p, channels, vendors, c);
  if (!is_ours_first) cuda::offer_depthwise(direction, p, c);
  if (is_packed) cuda::offer_krsc(s, p, own, c);
  own(s, c);
}

}  // namespace

void cuda::offer_direct(ConvDirection direction, const ConvSpecs& s, const Problem<Params>& p, Candidates& c) {
  const Planner planner(s.x, s.w, s.y, p.params);
  const auto offer = [&](const char* name, const Gemm& g, int a, int b, int bias) {
    offer_gemm("direct", name, p, g, a, b, bias, c);
  };
  switch (direction) {
    case ConvDirection::kForward:
      return offer("plumb:conv2d_forward", planner.forward(), 1, 0, p.in.size() == 3 ? 2 : -1);
    case ConvDirection::kBackwardInput: return offer("plumb:conv2d_backward_input", planner.backward_input(), 1, 0, -1);
    case ConvDirection::kBackwardWeight:
      return offer("plumb:conv2d_backward_weight", planner.backward_weight(), 0, 1, -1);
  }
}

void Conv2dForward::cuda(const Problem<Params>& p, Candidates& c) {
  cuda::check_extents("conv2d", p.in[0], p.params.padding);
  offer_all(cuda::ConvDirection::kForward, {p.in[0], p.in[1], p.out[0]}, p, c);
}

void Conv2dBackwardInput::cuda(const Problem<Params>& p, Candidates& c) {
  cuda::check_extents("conv2d_backward_input", p.out[0], p.params.padding);
  offer_all(cuda::ConvDirection::kBackwardInput, {p.out[0], p.in[1], p.in[0]}, p, c);
}

void Conv2dBackwardWeight::cuda(const Problem<Params>& p, Candidates& c) {
  cuda::check_extents("conv2d_backward_weight", p.in[1], p.params.padding);
  offer_all(cuda::ConvDirection::kBackwardWeight, {p.in[1], p.out[0], p.in[0]}, p, c);
}

}  // namespace plumb
