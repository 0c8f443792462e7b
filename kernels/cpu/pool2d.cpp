// Pooling on the host: one pass over the result, vectorised over the innermost dimension of the layout.
#include "kernels/pool2d.h"

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/pool2d_walks.h"

namespace plumb::cpu {
namespace pool {

Plan::Plan(const TensorSpec& x, const TensorSpec& y, const Pool2dParams& p, const TensorSpec& result)
    : IH(x.shape[2]), IW(x.shape[3]), OH(y.shape[2]), OW(y.shape[3]), KH(p.kernel[0]), KW(p.kernel[1]),
      SH(p.stride[0]), SW(p.stride[1]), top(p.padding[0]), left(p.padding[2]), streamed(result.bytes() >= kStreamBytes) {
  const int64_t N = x.shape[0], C = x.shape[1];
  outer = x.layout == Layout::kNchw ? N * C : (x.layout == Layout::kNhwc ? N : C);
  inner = x.layout == Layout::kNchw ? 1 : (x.layout == Layout::kNhwc ? C : N);
  for (int64_t height = 1; height <= KH; ++height) {
    for (int64_t ow = 0; ow < OW; ++ow) {
      const Range w = columns(ow);
      const int64_t divisor = p.count_include_pad ? KH * KW : height * (w.end - w.begin);
      scale.push_back(1.0f / static_cast<float>(divisor));
    }
  }
}

namespace {

template <class Rule, class Walk>
class PoolKernel final : public Kernel {
 public:
  PoolKernel(const char* op, const Plan& plan, int64_t rows)
      : Kernel(message("plumb:{}:{}", op, Walk::kName)), plan_(plan), rows_(rows) {}
  void run(const Launch& l) const override {
    const int64_t row_bytes = plan_.IW * plan_.inner * static_cast<int64_t>(sizeof(typename Rule::Element));
    parallel_for(rows_, std::max<int64_t>(1, kGrainBytes / std::max<int64_t>(1, row_bytes)), [&](int64_t begin, int64_t end) {
      Walk::template walk<Rule>(plan_, l, begin, end);
      if (plan_.streamed) stream_fence();
    });
  }

 private:
  Plan plan_;
  int64_t rows_;
};

template <class Rule>
void offer_forward(const char* op, const Plan& g, Candidates& candidates) {
  candidates.add("loop", [=, rows = g.outer * g.OH]() -> std::unique_ptr<Kernel> {
    if (g.inner > 1) return std::make_unique<PoolKernel<Rule, ForwardLanes>>(op, g, rows);
    if (g.SW == 1) return std::make_unique<PoolKernel<Rule, ForwardColumns<1>>>(op, g, rows);
    if (g.SW == 2) return std::make_unique<PoolKernel<Rule, ForwardColumns<2>>>(op, g, rows);
    return std::make_unique<PoolKernel<Rule, ForwardColumns<0>>>(op, g, rows);
  });
}

template <class Rule>
void offer_backward(const char* op, const Plan& g, Candidates& candidates) {
  candidates.add("loop", [=, rows = g.outer * g.IH]() -> std::unique_ptr<Kernel> {
    if (g.inner > 1) return std::make_unique<PoolKernel<Rule, BackwardLanes>>(op, g, rows);
    return std::make_unique<PoolKernel<Rule, BackwardColumns>>(op, g, rows);
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
    if (p.out.size() == 1) return offer_forward<MaxForward<T, NoIndex>>(kName, g, c);
    if (p.out[1].dtype == DType::kU8) return offer_forward<MaxForward<T, uint8_t>>(kName, g, c);
    offer_forward<MaxForward<T, int32_t>>(kName, g, c);
  });
}

void MaxPool2dBackward::cpu(const Problem<Params>& p, Candidates& c) {
  const cpu::pool::Plan g(p.out[0], p.in[0], p.params, p.out[0]);
  cpu::pool::dispatch(p.in[0].dtype, [&]<class T>() {
    using namespace cpu::pool;
    if (p.in[1].dtype == DType::kU8) return offer_backward<MaxBackward<T, uint8_t>>(kName, g, c);
    offer_backward<MaxBackward<T, int32_t>>(kName, g, c);
  });
}

void MaxPool2dGather::cpu(const Problem<Params>& p, Candidates& c) {
  const cpu::pool::Plan g(p.in[0], p.out[0], p.params, p.out[0]);
  cpu::pool::dispatch(p.in[0].dtype, [&]<class T>() {
    using namespace cpu::pool;
    if (p.in[1].dtype == DType::kU8) return offer_forward<MaxGather<T, uint8_t>>(kName, g, c);
    offer_forward<MaxGather<T, int32_t>>(kName, g, c);
  });
}

void AvgPool2dForward::cpu(const Problem<Params>& p, Candidates& c) {
  const cpu::pool::Plan g(p.in[0], p.out[0], p.params, p.out[0]);
  cpu::pool::dispatch(p.in[0].dtype, [&]<class T>() { cpu::pool::offer_forward<cpu::pool::AvgForward<T>>(kName, g, c); });
}

void AvgPool2dBackward::cpu(const Problem<Params>& p, Candidates& c) {
  const cpu::pool::Plan g(p.out[0], p.in[0], p.params, p.out[0]);
  cpu::pool::dispatch(p.in[0].dtype, [&]<class T>() { cpu::pool::offer_backward<cpu::pool::AvgBackward<T>>(kName, g, c); });
}

}  // namespace plumb
