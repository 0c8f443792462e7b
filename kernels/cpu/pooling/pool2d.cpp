// Pooling on the host: one pass over the result, vectorised over the innermost dimension of the layout, and oneDNN.
#include "kernels/pool2d.h"

#include "kernels/cpu/nontemporal.h"
#include "kernels/cpu/offer.h"
#include "kernels/cpu/onednn/dnnl.h"
#include "kernels/cpu/pooling/pool2d_onednn.h"
#include "kernels/cpu/pooling/pool2d_planes.h"
#include "kernels/cpu/pooling/pool2d_walks.h"
#include "kernels/cpu/pooling/pool2d_whole.h"

namespace plumb::cpu {
namespace pool {

namespace {

struct Work {
  const char* name;
  int64_t rows, longest;  // their number, and the elements of the longest
  Walk walk;
  int64_t (*place)(const Plan&, int64_t row);  // the element of an output with which a row begins
  Walk inner;                                  // what it is where runs are of neighbours in the innermost dimension
  Walk unstaged = nullptr;                     // of large results, if it needs no stage
};

// Runs a walk on all threads. Large results are written past the caches, by way of a small stage.
class PoolKernel final : public Kernel {
 public:
  PoolKernel(std::string name, Plan plan, Work work, std::span<const TensorSpec> in, std::span<const TensorSpec> out)
      : Kernel(std::move(name)), plan_(std::move(plan)), work_(work) {
    const auto written = static_cast<int64_t>(bytes_of(out)), moved = static_cast<int64_t>(bytes_of(in)) + written;
    grain_ = std::max<int64_t>(1, kGrainBytes * work.rows / std::max<int64_t>(1, moved));
    // What is read pushes what is written out of the caches, too.
    if (written < nontemporal_bytes && moved < 2 * nontemporal_bytes) return;
    if (work.unstaged) {
      work_.walk = work.unstaged;
      return;
    }
    int64_t size = 0;
    for (const TensorSpec& s : out) {
      sizes_.push_back(static_cast<int64_t>(size_of(s.dtype)));
      size += sizes_.back();
    }
    staged_rows_ = kStage / (work.longest * size);
  }
  void run(const Launch& l) const override {
    parallel_for(work_.rows, grain_, [&](int64_t begin, int64_t end) {
      staged_rows_ > 0 ? walk_staged(l, begin, end) : work_.walk(plan_, l, begin, end);
    });
  }

 private:
  static constexpr int64_t kStage = 32 << 10;

  void walk_staged(const Launch& l, int64_t begin, int64_t end) const {
    alignas(64) uint8_t stage[kStage];
    for (int64_t next; begin < end; begin = next) {
      next = std::min(end, begin + staged_rows_);
      const int64_t first = work_.place(plan_, begin), n = work_.place(plan_, next) - first;
      void* out[2];  // a walk finds its rows from the first of all, which does not exist
      const uint8_t* staged[2];
      int64_t used = 0;
      for (size_t i = 0; i < sizes_.size(); ++i) {
        staged[i] = stage + used;
        out[i] =
            reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(staged[i]) - static_cast<uintptr_t>(first * sizes_[i]));
        used += n * sizes_[i];
      }
      work_.walk(plan_, {l.in, out, l.workspace}, begin, next);
      for (size_t i = 0; i < sizes_.size(); ++i) {
        copy_nontemporal(static_cast<uint8_t*>(l.out[i]) + first * sizes_[i], staged[i], n * sizes_[i]);
      }
    }
    nontemporal_fence();
  }

  Plan plan_;
  Work work_;
  int64_t grain_, staged_rows_ = 0;
  std::vector<int64_t> sizes_;  // of an element of each output, where they are staged
};

// f.template operator()<stride>() for the strides of columns that are compiled, and <0>() for others.
template <class F>
Walk by_stride(int64_t stride, const F& f) {
  switch (stride) {
    case 1: return f.template operator()<1>();
    case 2: return f.template operator()<2>();
    default: return f.template operator()<0>();
  }
}

template <class Rule>
Work forward_work(const Plan& g) {
  if (g.is_squares()) {
    return {"squares",
            ceil_div(g.windows(), kLanes),
            kLanes,
            &forward_squares<Rule>,
            [](const Plan& p, int64_t block) { return std::min(block * kLanes, p.windows()); },
            &forward_inner<Rule>};
  }
  const Walk columns = by_stride(g.SW, []<int64_t kStride>() { return &forward_columns<Rule, kStride>; });
  const Walk walk = g.inner != 1 ? &forward_inner<Rule> : columns;
  return {g.inner != 1 ? "inner" : "columns",
          g.outer * g.OH,
          g.OW * g.inner,
          walk,
          [](const Plan& p, int64_t row) { return row * p.OW * p.inner; },
          &forward_inner<Rule>};
}
template <class Rule>
Work backward_work(const Plan& g) {
  if (g.is_squares()) {
    return {"squares",
            ceil_div(g.windows(), kLanes),
            4 * kLanes,
            &backward_squares<Rule>,
            [](const Plan& p, int64_t block) { return 4 * std::min(block * kLanes, p.windows()); },
            &backward_inner<Rule>};
  }
  if (g.tiles() && g.inner == 1 && g.KW == 2) {
    return {"column_pairs",
            g.outer * g.OH,
            (g.KH + g.IH - g.OH * g.KH) * g.IW,
            &backward_column_pairs<Rule>,
            [](const Plan& p, int64_t row) { return (row / p.OH * p.IH + row % p.OH * p.KH) * p.IW; },
            &backward_inner<Rule>};
  }
  const auto place = [](const Plan& p, int64_t row) { return row * p.IW * p.inner; };
  if (g.inner != 1) {
    Walk unstaged = &backward_inner<Rule>;
    if constexpr (std::is_same_v<typename Rule::Element, float>) {
      if (streams_inner(g)) unstaged = &backward_inner<Rule, true>;
    }
    return {"inner", g.outer * g.IH, g.IW * g.inner, &backward_inner<Rule>, place, &backward_inner<Rule>, unstaged};
  }
  const Walk columns = by_stride(g.SW, []<int64_t kStride>() { return &backward_columns<Rule, kStride>; });
  return {"columns", g.outer * g.IH, g.IW, columns, place, &backward_inner<Rule>};
}

template <class Kind>
Candidates::Make own(const Problem<Pool2dParams>& p, const Plan& g, Work work) {
  return [=, in = p.in, out = p.out] {
    return std::make_unique<PoolKernel>(message("plumb:{}:{}", Kind::kName, work.name), g, work, in, out);
  };
}

// The same by planes side by side, whose operands are `like_x` or not, inputs before outputs.
template <class Kind>
Candidates::Make by_planes(const Problem<Pool2dParams>& p, const Plan& g, Walk inner, bool is_backward,
                           std::vector<bool> like_x) {
  if (g.inner != 1) return nullptr;
  PlanesWork work{inner, is_backward, {p.in.begin(), p.in.end()}, {p.out.begin(), p.out.end()}, std::move(like_x)};
  return [=, threads = p.threads] { return planes_kernel(message("plumb:{}:planes", Kind::kName), g, work, threads); };
}

// To transpose planes pays where an element is in several windows. A window of a whole plane goes first where its
// elements are neighbours; where the results of its lanes leave registers between pixels, from 8 pixels on.
void offer(const Extents& g, Candidates& candidates, const Candidates::Make& own, const Candidates::Make& planes,
           const Candidates::Make& onednn, Place onednn_place = Place::kListed,
           const Candidates::Make& whole = nullptr) {
  const bool overlap = g.overlap(), whole_pays = g.inner == 1 || g.KH * g.KW >= 8;
  offer_in_order(candidates, {{"whole", Provider::kPlumbline, is_whole(g) ? whole : nullptr,
                               whole_pays ? Place::kFirst : Place::kLast},
                              {"planes", Provider::kPlumbline, planes, overlap ? Place::kFirst : Place::kListed},
                              {"loop", Provider::kPlumbline, own, overlap ? Place::kListed : Place::kFirst},
                              {"onednn", Provider::kOneDnn, [=] { return declining(onednn); }, onednn_place}});
}

// oneDNN adds the gradients of windows that overlap faster than the loop.
Place place_of_onednn_backward(const Problem<Pool2dParams>& p, const Extents& g) {
  return g.overlap() && p.out[0].layout != Layout::kNhwc ? Place::kFirst : Place::kListed;
}

template <class F>
Work by_sharing(const Plan& g, const F& f) {
  switch (g.sharing()) {
    case Sharing::kEach: return f.template operator()<Sharing::kEach>();
    case Sharing::kAlike: return f.template operator()<Sharing::kAlike>();
    default: return f.template operator()<Sharing::kExact>();
  }
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
    const Candidates::Make loop = own<MaxPool2dForward>(p, g, work);
    const std::vector<bool> like_x = p.out.size() == 1 ? std::vector{true, false} : std::vector{true, false, false};
    offer(
        g, c, loop, by_planes<MaxPool2dForward>(p, g, work.inner, false, like_x),
        [=] { return cpu::onednn_max_forward(p, loop); }, cpu::Place::kListed, [=] { return whole_max_forward(p, g); });
  });
}

void MaxPool2dBackward::cpu(const Problem<Params>& p, Candidates& c) {
  const cpu::pool::Plan g(p.out[0], p.in[0], p.params);
  cpu::pool::dispatch(p.in[0].dtype, [&]<class T>() {
    using namespace cpu::pool;
    const bool u8 = p.in[1].dtype == DType::kU8;
    const Work work = u8 ? backward_work<MaxBackward<T, uint8_t>>(g) : backward_work<MaxBackward<T, int32_t>>(g);
    offer(
        g, c, own<MaxPool2dBackward>(p, g, work),
        by_planes<MaxPool2dBackward>(p, g, work.inner, true, {false, false, true}),
        [=] { return cpu::onednn_max_backward(p); }, place_of_onednn_backward(p, g),
        [=] { return whole_max_backward(p, g); });
  });
}

void MaxPool2dGather::cpu(const Problem<Params>& p, Candidates& c) {
  const cpu::pool::Plan g(p.in[0], p.out[0], p.params);
  cpu::pool::dispatch(p.in[0].dtype, [&]<class T>() {
    using namespace cpu::pool;
    const bool u8 = p.in[1].dtype == DType::kU8;
    const Work work = u8 ? forward_work<MaxGather<T, uint8_t>>(g) : forward_work<MaxGather<T, int32_t>>(g);
    if (const auto planes = by_planes<MaxPool2dGather>(p, g, work.inner, false, {true, false, false}))
      c.add("planes", planes);
    c.add("loop", own<MaxPool2dGather>(p, g, work));
  });
}

void AvgPool2dForward::cpu(const Problem<Params>& p, Candidates& c) {
  const cpu::pool::Plan g(p.in[0], p.out[0], p.params);
  cpu::pool::dispatch(p.in[0].dtype, [&]<class T>() {
    using namespace cpu::pool;
    const auto work = by_sharing(g, [&]<Sharing sharing>() { return forward_work<AvgForward<T, sharing>>(g); });
    offer(
        g, c, own<AvgPool2dForward>(p, g, work), by_planes<AvgPool2dForward>(p, g, work.inner, false, {true, false}),
        [=] { return cpu::onednn_avg_forward(p); }, cpu::Place::kListed, [=] { return whole_avg_forward(p, g); });
  });
}

void AvgPool2dBackward::cpu(const Problem<Params>& p, Candidates& c) {
  const cpu::pool::Plan g(p.out[0], p.in[0], p.params);
  cpu::pool::dispatch(p.in[0].dtype, [&]<class T>() {
    using namespace cpu::pool;
    const auto work = by_sharing(g, [&]<Sharing sharing>() { return backward_work<AvgBackward<T, sharing>>(g); });
    offer(
        g, c, own<AvgPool2dBackward>(p, g, work), by_planes<AvgPool2dBackward>(p, g, work.inner, true, {false, true}),
        [=] { return cpu::onednn_avg_backward(p); }, place_of_onednn_backward(p, g),
        [=] { return whole_avg_backward(p, g); });
  });
}

}  // namespace plumb
