// Pooling on the host: oneDNN, and for maxima one pass over the result, vectorised over the innermost dimension of the
// layout.
#include "kernels/pool2d.h"

#include "kernels/cpu/onednn/dnnl.h"
#include "kernels/cpu/pooling/pool2d_onednn.h"
#include "kernels/cpu/pooling/pool2d_walks.h"

namespace plumb::cpu {
namespace pool {

Extents::Extents(const TensorSpec& x, const TensorSpec& y, const Pool2dParams& p, bool is_large)
    : outer(x.layout == Layout::kNchw ? x.shape[0] * x.shape[1] : x.shape[x.layout == Layout::kNhwc ? 0 : 1]),
      inner(x.layout == Layout::kNchw ? 1 : x.shape[x.layout == Layout::kNhwc ? 1 : 0]),
      IH(x.shape[2]),
      IW(x.shape[3]),
      OH(y.shape[2]),
      OW(y.shape[3]),
      KH(p.kernel[0]),
      KW(p.kernel[1]),
      SH(p.stride[0]),
      SW(p.stride[1]),
      top(p.padding[0]),
      left(p.padding[2]),
      streams(is_large && inner % kLanes == 0) {}

Plan::Plan(const Extents& e) : extents(e) {
  const auto windows_of = [](int64_t extent, int64_t before, int64_t kernel, int64_t stride, int64_t windows) {
    std::vector<Range> of;
    for (int64_t i = 0; i < extent; ++i) {
      of.push_back({ceil_div(i + before - kernel + 1, stride), std::min(windows, (i + before) / stride + 1)});
    }
    return of;
  };
  windows_of_row = windows_of(e.IH, e.top, e.KH, e.SH, e.OH);
  windows_of_column = windows_of(e.IW, e.left, e.KW, e.SW, e.OW);
}

namespace {

/// A walk over rows of the result.
using Walk = void (*)(const Plan&, const Launch&, int64_t begin, int64_t end);

class PoolKernel final : public Kernel {
 public:
  PoolKernel(std::string name, Plan plan, Walk walk, int64_t rows, int64_t bytes)
      : Kernel(std::move(name)), plan_(std::move(plan)), walk_(walk), rows_(rows) {
    grain_ = kGrainBytes * rows_ / std::max<int64_t>(1, bytes);
  }
  void run(const Launch& l) const override {
    parallel_for(rows_, grain_, [&](int64_t begin, int64_t end) {
      walk_(plan_, l, begin, end);
      if (plan_.extents.streams) nontemporal_fence();
    });
  }

 private:
  Plan plan_;
  Walk walk_;
  int64_t rows_, grain_;
};

// f.template operator()<T>() for the dtypes that these kernels take.
template <class F>
void dispatch(DType t, F&& f) {
  if (t == DType::kF32) f.template operator()<float>();
  if (t == DType::kBf16) f.template operator()<Bfloat16>();
}

using Make = Candidates::Make;

// By a walk over the rows of y.
template <class Kind>
Make forward_of(const Problem<Pool2dParams>& p, Walk walk) {
  return [=] {
    const auto written = static_cast<int64_t>(bytes_of(p.out)), moved = written + static_cast<int64_t>(bytes_of(p.in));
    // What is read pushes what is written out of the caches, too.
    const bool streams = written >= nontemporal_bytes || moved >= 2 * nontemporal_bytes;
    const Extents e(p.in[0], p.out[0], p.params, streams);
    return std::make_unique<PoolKernel>(message("plumb:{}", Kind::kName), Plan(e), walk, e.outer * e.OH, moved);
  };
}
// By a walk over the rows of dx.
template <class Kind>
Make backward_of(const Problem<Pool2dParams>& p, Walk walk) {
  return [=] {
    const Extents e(p.out[0], p.in[0], p.params, false);
    return std::make_unique<PoolKernel>(message("plumb:{}", Kind::kName), Plan(e), walk, e.outer * e.IH,
                                        static_cast<int64_t>(bytes_of(p.in) + bytes_of(p.out)));
  };
}

// oneDNN goes first where a pixel has few lanes, of which a run has little, and where elements are half as wide.
bool is_own_faster(const TensorSpec& x) {
  const int64_t lanes = x.layout == Layout::kNchw ? 1 : x.shape[x.layout == Layout::kNhwc ? 1 : 0];
  return x.dtype == DType::kF32 && lanes > 2 * kLanes;
}

void offer(bool own_first, const Make& own, const Make& onednn, Candidates& c) {
  if (own_first) c.add("loop", own);
  c.add(Provider::kOneDnn, "onednn", [=] { return declining(onednn); });
  if (!own_first) c.add("loop", own);
}

}  // namespace
}  // namespace pool
}  // namespace plumb::cpu

namespace plumb {

using namespace cpu::pool;

void MaxPool2dForward::cpu(const Problem<Params>& p, Candidates& c) {
  dispatch(p.in[0].dtype, [&]<class T>() {
    const Make own = forward_of<MaxPool2dForward>(p, p.out.size() == 1              ? &forward<MaxForward<T, NoIndex>>
                                                     : p.out[1].dtype == DType::kU8 ? &forward<MaxForward<T, uint8_t>>
                                                                                    : &forward<MaxForward<T, int32_t>>);
    offer(
        is_own_faster(p.in[0]), own, [=] { return cpu::onednn_max_forward(p, own); }, c);
  });
}

void MaxPool2dBackward::cpu(const Problem<Params>& p, Candidates& c) {
  dispatch(p.in[0].dtype, [&]<class T>() {
    const bool u8 = p.in[1].dtype == DType::kU8;
    offer(
        is_own_faster(p.out[0]),
        backward_of<MaxPool2dBackward>(p, u8 ? &backward<MaxBackward<T, uint8_t>> : &backward<MaxBackward<T, int32_t>>),
        [=] { return cpu::onednn_max_backward(p); }, c);
  });
}

void MaxPool2dGather::cpu(const Problem<Params>& p, Candidates& c) {
  dispatch(p.in[0].dtype, [&]<class T>() {
    const bool u8 = p.in[1].dtype == DType::kU8;
    c.add("loop",
          forward_of<MaxPool2dGather>(p, u8 ? &forward<MaxGather<T, uint8_t>> : &forward<MaxGather<T, int32_t>>));
  });
}

void AvgPool2dForward::cpu(const Problem<Params>& p, Candidates& c) {
  c.add(Provider::kOneDnn, "onednn", [p] { return cpu::declining([&] { return cpu::onednn_avg_forward(p); }); });
}

void AvgPool2dBackward::cpu(const Problem<Params>& p, Candidates& c) {
  c.add(Provider::kOneDnn, "onednn", [p] { return cpu::declining([&] { return cpu::onednn_avg_backward(p); }); });
}

}  // namespace plumb
