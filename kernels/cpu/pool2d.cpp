// Pooling on the host: one pass over the result, vectorised over the innermost dimension of the layout.
#include "kernels/pool2d.h"

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/pool2d_walks.h"

namespace plumb::cpu {
namespace pool {

Plan::Plan(const TensorSpec& x, const TensorSpec& y, const Pool2dParams& p, const TensorSpec& result)
    : IH(x.shape[2]), IW(x.shape[3]), OH(y.shape[2]), OW(y.shape[3]), KH(p.kernel[0]), KW(p.kernel[1]),
      SH(p.stride[0]), SW(p.stride[1]), top(p.padding[0]), left(p.padding[2]), streamed(result.bytes() >= simd::kStreamBytes) {
  const int64_t N = x.shape[0], C = x.shape[1];
  outer = x.layout == Layout::kNchw ? N * C : (x.layout == Layout::kNhwc ? N : C);
  inner = x.layout == Layout::kNchw ? 1 : (x.layout == Layout::kNhwc ? C : N);
  row_bytes = IW * inner * static_cast<int64_t>(size_of(x.dtype));
  const auto windows_of = [](int64_t extent, int64_t before, int64_t kernel, int64_t stride, int64_t windows) {
    std::vector<Range> of;
    for (int64_t i = 0; i < extent; ++i) {
      of.push_back({ceil_div(i + before - kernel + 1, stride), std::min(windows, (i + before) / stride + 1)});
    }
    return of;
  };
  windows_of_row = windows_of(IH, top, KH, SH, OH);
  windows_of_column = windows_of(IW, left, KW, SW, OW);
  for (int64_t height = 1; height <= KH; ++height) {
    for (int64_t ow = 0; ow < OW; ++ow) {
      const Range w = columns(ow);
      const int64_t divisor = p.count_include_pad ? KH * KW : height * (w.end - w.begin);
      scale.push_back(1.0f / static_cast<float>(divisor));
    }
  }
}

namespace {

using Walk = void (*)(const Plan&, const Launch&, int64_t begin, int64_t end);

class PoolKernel final : public Kernel {
 public:
  PoolKernel(std::string name, Plan plan, const TensorSpec& result, Walk walk)
      : Kernel(std::move(name)), plan_(std::move(plan)), walk_(walk) {
    rows_ = plan_.outer * result.shape[2];
    grain_ = std::max<int64_t>(1, kGrainBytes / std::max<int64_t>(1, plan_.row_bytes));
  }
  void run(const Launch& l) const override {
    parallel_for(rows_, grain_, [&](int64_t begin, int64_t end) {
      walk_(plan_, l, begin, end);
      if (plan_.streamed) simd::stream_fence();
    });
  }

 private:
  Plan plan_;
  Walk walk_;
  int64_t rows_, grain_;
};

template <class Rule>
Walk forward_walk(const Plan& g) {
  if (g.inner != 1) return &forward_lanes<Rule>;
  return g.SW == 1 ? &forward_columns<Rule, 1> : (g.SW == 2 ? &forward_columns<Rule, 2> : &forward_columns<Rule, 0>);
}
template <class Rule>
Walk backward_walk(const Plan& g) {
  if (g.inner != 1) return &backward_lanes<Rule>;
  return g.SW == 1 ? &backward_columns<Rule, 1> : (g.SW == 2 ? &backward_columns<Rule, 2> : &backward_columns<Rule, 0>);
}

void offer(const char* op, const Plan& g, const TensorSpec& result, Walk walk, Candidates& candidates) {
  candidates.add("loop", [=] {
    return std::make_unique<PoolKernel>(message("plumb:{}:{}", op, g.inner != 1 ? "lanes" : "columns"), g, result, walk);
  });
}

// f.template operator()<T>() for the dtypes that these kernels take.
template <class F>
void dispatch(DType t, F&& f) {
  if (t == DType::kF32) f.template operator()<float>();
  if (t == DType::kBf16) f.template operator()<Bfloat16>();
}

}  // namespace
}  // namespace pool
}  // namespace plumb::cpu

namespace plumb {

void MaxPool2dForward::cpu(const Problem<Params>& p, Candidates& c) {
  const cpu::pool::Plan g(p.in[0], p.out[0], p.params, p.out[0]);
  cpu::pool::dispatch(p.in[0].dtype, [&]<class T>() {
    using namespace cpu::pool;
    const auto walk = p.out.size() == 1                  ? forward_walk<MaxForward<T, NoIndex>>(g)
                      : p.out[1].dtype == DType::kU8 ? forward_walk<MaxForward<T, uint8_t>>(g)
                                                     : forward_walk<MaxForward<T, int32_t>>(g);
    offer(kName, g, p.out[0], walk, c);
  });
}

void MaxPool2dBackward::cpu(const Problem<Params>& p, Candidates& c) {
  const cpu::pool::Plan g(p.out[0], p.in[0], p.params, p.out[0]);
  cpu::pool::dispatch(p.in[0].dtype, [&]<class T>() {
    using namespace cpu::pool;
    const bool u8 = p.in[1].dtype == DType::kU8;
    const auto walk = u8 ? backward_walk<MaxBackward<T, uint8_t>>(g) : backward_walk<MaxBackward<T, int32_t>>(g);
    offer(kName, g, p.out[0], walk, c);
  });
}

void MaxPool2dGather::cpu(const Problem<Params>& p, Candidates& c) {
  const cpu::pool::Plan g(p.in[0], p.out[0], p.params, p.out[0]);
  cpu::pool::dispatch(p.in[0].dtype, [&]<class T>() {
    using namespace cpu::pool;
    const bool u8 = p.in[1].dtype == DType::kU8;
    const auto walk = u8 ? forward_walk<MaxGather<T, uint8_t>>(g) : forward_walk<MaxGather<T, int32_t>>(g);
    offer(kName, g, p.out[0], walk, c);
  });
}

void AvgPool2dForward::cpu(const Problem<Params>& p, Candidates& c) {
  const cpu::pool::Plan g(p.in[0], p.out[0], p.params, p.out[0]);
  cpu::pool::dispatch(p.in[0].dtype, [&]<class T>() {
    cpu::pool::offer(kName, g, p.out[0], cpu::pool::forward_walk<cpu::pool::AvgForward<T>>(g), c);
  });
}

void AvgPool2dBackward::cpu(const Problem<Params>& p, Candidates& c) {
  const cpu::pool::Plan g(p.out[0], p.in[0], p.params, p.out[0]);
  cpu::pool::dispatch(p.in[0].dtype, [&]<class T>() {
    cpu::pool::offer(kName, g, p.out[0], cpu::pool::backward_walk<cpu::pool::AvgBackward<T>>(g), c);
  });
}

}  // namespace plumb
