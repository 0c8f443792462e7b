// Pooling on the host: one pass over the result, vectorised over the innermost dimension of the layout.
#include "kernels/pool2d.h"

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/pool2d_walks.h"

namespace plumb::cpu {
namespace pool {

Plan::Plan(const TensorSpec& x, const TensorSpec& y, const Pool2dParams& p)
    : IH(x.shape[2]),
      IW(x.shape[3]),
      OH(y.shape[2]),
      OW(y.shape[3]),
      KH(p.kernel[0]),
      KW(p.kernel[1]),
      SH(p.stride[0]),
      SW(p.stride[1]),
      top(p.padding[0]),
      left(p.padding[2]) {
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

// A walk, and the number of rows that it goes over.
struct Work {
  int64_t rows;
  void (*walk)(const Plan&, const Launch&, int64_t begin, int64_t end);
};

class PoolKernel final : public Kernel {
 public:
  PoolKernel(std::string name, Plan plan, Work work)
      : Kernel(std::move(name)),
        plan_(std::move(plan)),
        work_(work),
        grain_(std::max<int64_t>(1, kGrainBytes / std::max<int64_t>(1, plan_.row_bytes))) {}
  void run(const Launch& l) const override {
    parallel_for(work_.rows, grain_, [&](int64_t begin, int64_t end) { work_.walk(plan_, l, begin, end); });
  }

 private:
  Plan plan_;
  Work work_;
  int64_t grain_;
};

template <class Rule>
Work forward_work(const Plan& g) {
  const int64_t rows = g.outer * g.OH;
  if (g.inner != 1) return {rows, &forward_lanes<Rule>};
  return {rows,
          g.SW == 1 ? &forward_columns<Rule, 1> : (g.SW == 2 ? &forward_columns<Rule, 2> : &forward_columns<Rule, 0>)};
}
template <class Rule>
Work backward_work(const Plan& g) {
  const int64_t rows = g.outer * g.IH;
  if (g.inner != 1) return {rows, &backward_lanes<Rule>};
  if (g.tiles()) return {g.outer * g.OH, &backward_tiles<Rule>};
  return {rows, g.SW == 1 ? &backward_columns<Rule, 1>
                          : (g.SW == 2 ? &backward_columns<Rule, 2> : &backward_columns<Rule, 0>)};
}

void offer(const char* op, const Plan& g, Work work, Candidates& candidates) {
  candidates.add("loop", [=] {
    return std::make_unique<PoolKernel>(message("plumb:{}:{}", op, g.inner != 1 ? "lanes" : "columns"), g, work);
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
  const cpu::pool::Plan g(p.in[0], p.out[0], p.params);
  cpu::pool::dispatch(p.in[0].dtype, [&]<class T>() {
    using namespace cpu::pool;
    const Work work = p.out.size() == 1              ? forward_work<MaxForward<T, NoIndex>>(g)
                      : p.out[1].dtype == DType::kU8 ? forward_work<MaxForward<T, uint8_t>>(g)
                                                     : forward_work<MaxForward<T, int32_t>>(g);
    offer(kName, g, work, c);
  });
}

void MaxPool2dBackward::cpu(const Problem<Params>& p, Candidates& c) {
  const cpu::pool::Plan g(p.out[0], p.in[0], p.params);
  cpu::pool::dispatch(p.in[0].dtype, [&]<class T>() {
    using namespace cpu::pool;
    const bool u8 = p.in[1].dtype == DType::kU8;
    const Work work = u8 ? backward_work<MaxBackward<T, uint8_t>>(g) : backward_work<MaxBackward<T, int32_t>>(g);
    offer(kName, g, work, c);
  });
}

void MaxPool2dGather::cpu(const Problem<Params>& p, Candidates& c) {
  const cpu::pool::Plan g(p.in[0], p.out[0], p.params);
  cpu::pool::dispatch(p.in[0].dtype, [&]<class T>() {
    using namespace cpu::pool;
    const bool u8 = p.in[1].dtype == DType::kU8;
    const Work work = u8 ? forward_work<MaxGather<T, uint8_t>>(g) : forward_work<MaxGather<T, int32_t>>(g);
    offer(kName, g, work, c);
  });
}

void AvgPool2dForward::cpu(const Problem<Params>& p, Candidates& c) {
  const cpu::pool::Plan g(p.in[0], p.out[0], p.params);
  cpu::pool::dispatch(p.in[0].dtype, [&]<class T>() {
    cpu::pool::offer(kName, g, cpu::pool::forward_work<cpu::pool::AvgForward<T>>(g), c);
  });
}

void AvgPool2dBackward::cpu(const Problem<Params>& p, Candidates& c) {
  const cpu::pool::Plan g(p.out[0], p.in[0], p.params);
  cpu::pool::dispatch(p.in[0].dtype, [&]<class T>() {
    cpu::pool::offer(kName, g, cpu::pool::backward_work<cpu::pool::AvgBackward<T>>(g), c);
  });
}

}  // namespace plumb
