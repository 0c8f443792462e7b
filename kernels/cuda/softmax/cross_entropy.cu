// Cross entropy of rows: a warp a row, or a block for long ones. A label out of range gives NaN, and a sentence to the
// host.
#include "kernels/cross_entropy.h"

#include "kernels/cuda/reduction/rows.cuh"

namespace plumb {
namespace {

namespace math = functors::math;
using cuda::Compute;
using cuda::kRowThreads;
using cuda::kWarp;
using cuda::Piece;

constexpr unsigned kSumThreads = 1024;
constexpr char kBadLabel[] =
    "cross_entropy: the label of row {} is {}; with {} classes labels are at least 0 and less than that";

template <class T>
struct LossArgs {
  const T* x;
  const int64_t* labels;
  Compute<T>*loss, *statistics;
  double* losses;  // of rows, where they are to be summed
  const Compute<T>* dy;
  T* dx;
  int64_t rows, classes;
  bool is_mean, is_each;
  Fault* fault;
  uint64_t sentence;
};

template <class T>
__device__ bool check_label(const LossArgs<T>& a, int64_t row, int64_t label, bool tells) {
  const bool is_good = label >= 0 && label < a.classes;
  if (!is_good && tells) cuda::report(a.fault, a.sentence, row, label, a.classes);
  return is_good;
}

template <class Who, int kEach, class T>
__device__ void forward_row(const LossArgs<T>& a, int64_t row, cuda::RowShared<Compute<T>>* s) {
  using C = Compute<T>;
  const T* const x = a.x + row * a.classes;
  const auto [largest, sum] = cuda::exponentials<Who, kEach>(x, a.classes, 1, s);
  if (Who::first() != 0) return;
  const int64_t label = a.labels[row];
  C of_row = std::numeric_limits<C>::quiet_NaN();
  double value = std::numeric_limits<double>::quiet_NaN(), log_sum = value;
  if (check_label(a, row, label, true)) {
    of_row = largest;
    log_sum = math::log(static_cast<double>(sum));
    value = log_sum - static_cast<double>(cuda::load(x + label) - largest);
  }
  a.statistics[2 * row] = of_row;
  a.statistics[2 * row + 1] = static_cast<C>(log_sum);
  if (a.is_each) {
    a.loss[row] = static_cast<C>(value);
  } else {
    a.losses[row] = value;
  }
}

template <class Who, int kEach, class T>
__device__ void backward_row(const LossArgs<T>& a, int64_t row) {
  using C = Compute<T>;
  const int64_t label = a.labels[row], first = row * a.classes;
  const bool is_good = check_label(a, row, label, Who::first() == 0);
  const C largest = a.statistics[2 * row], log_sum = a.statistics[2 * row + 1];
  const C share = a.dy[a.is_each ? row : 0] / (a.is_mean ? static_cast<C>(a.rows) : C(1));
  const C d = is_good ? share : std::numeric_limits<C>::quiet_NaN();
  cuda::for_pieces<Who, kEach>(a.x + first, a.classes, 1, [&](int64_t i, const Piece<T, kEach>& x) {
    Piece<T, kEach> dx;
    for (int j = 0; j < kEach; ++j) {
      const C softmax = math::exp((cuda::wide(x.of[j]) - largest) - log_sum);
      dx.of[j] = cuda::rounded<T>((i + j == label ? softmax - C(1) : softmax) * d);
    }
    cuda::store_piece(a.dx + first + i, dx);
  });
}

template <class T, bool kBackward, int kEach>
__global__ void __launch_bounds__(kRowThreads, cuda::kFewBlocks) cross_entropy_by_warps_kernel(const LossArgs<T> a) {
#pragma unroll 1
  for (int64_t row = cuda::thread_of_grid() / kWarp; row < a.rows; row += cuda::threads_of_grid() / kWarp) {
    if constexpr (kBackward) {
      backward_row<cuda::ByWarp, kEach>(a, row);
    } else {
      forward_row<cuda::ByWarp, kEach>(a, row, static_cast<cuda::RowShared<Compute<T>>*>(nullptr));
    }
  }
}
template <class T, bool kBackward, int kEach>
__global__ void __launch_bounds__(kRowThreads, cuda::kFewBlocks) cross_entropy_by_blocks_kernel(const LossArgs<T> a) {
  if constexpr (kBackward) {
#pragma unroll 1
    for (int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) backward_row<cuda::ByBlock, kEach>(a, row);
  } else {
    auto& s = cuda::shared<cuda::RowShared<Compute<T>>>();
#pragma unroll 1
    for (int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) forward_row<cuda::ByBlock, kEach>(a, row, &s);
  }
}

struct SumShared {
  double of_warps[kSumThreads / kWarp];
};
// One block: the losses of the rows together.
template <class T>
__global__ void __launch_bounds__(kSumThreads) cross_entropy_sum_kernel(const LossArgs<T> a) {
  auto& s = cuda::shared<SumShared>();
  double sum = 0;
  for (int64_t row = threadIdx.x; row < a.rows; row += kSumThreads) sum += a.losses[row];
  sum = cuda::block_combine(sum, s.of_warps, cuda::Sum());
  if (threadIdx.x == 0) *a.loss = static_cast<Compute<T>>(a.is_mean ? sum / static_cast<double>(a.rows) : sum);
}

template <class T>
LossArgs<T> args_of(const TensorSpec& logits, const CrossEntropyParams& p, Device device) {
  LossArgs<T> a{};
  a.rows = logits.shape[0];
  a.classes = logits.shape[1];
  a.is_mean = p.reduction == LossReduction::kMean;
  a.is_each = p.reduction == LossReduction::kNone;
  a.fault = runtime_of(device).fault();
  a.sentence = cuda::sentence_of(kBadLabel);
  return a;
}

template <class T, bool kBackward, int kEach>
void launch(const cuda::Queue& q, const LossArgs<T>& a) {
  const bool by_warps = a.classes < cuda::kLeastOfBlock;
  const int64_t of_block = by_warps ? cuda::kRowWarps : 1;
  const cuda::Grid grid = cuda::grid_of(q.runtime(), (a.rows + of_block - 1) / of_block, kRowThreads);
  if (by_warps) return q.launch<cross_entropy_by_warps_kernel<T, kBackward, kEach>>(grid, a);
  q.launch<cross_entropy_by_blocks_kernel<T, kBackward, kEach>>(grid, a);
}
// 16 bytes at a time if every row begins at a multiple of that.
template <class T, bool kBackward>
void launch(const cuda::Queue& q, const LossArgs<T>& a) {
  constexpr int kEach = cuda::Vector<T>::kSize;
  a.classes % kEach == 0 ? launch<T, kBackward, kEach>(q, a) : launch<T, kBackward, 1>(q, a);
}

}  // namespace

void CrossEntropyForward::cuda(const Problem<Params>& p, Candidates& candidates) {
  cuda::dispatch_compute(p.in[0].dtype, [&]<class T>() {
    candidates.add("loop", [x = p.in[0], params = p.params, device = p.device] {
      const LossArgs<T> args = args_of<T>(x, params, device);
      auto kernel =
          cuda::own("plumb:cross_entropy", device, args.is_each ? 1 : 2, [=](const cuda::Queue& q, const Launch& l) {
            LossArgs<T> now = args;
            now.x = static_cast<const T*>(l.in[0]);
            now.labels = static_cast<const int64_t*>(l.in[1]);
            now.loss = static_cast<Compute<T>*>(l.out[0]);
            now.statistics = static_cast<Compute<T>*>(l.out[1]);
            now.losses = static_cast<double*>(l.workspace);
            launch<T, false>(q, now);
            if (!now.is_each) q.launch<cross_entropy_sum_kernel<T>>(cuda::Grid{{1}, {kSumThreads}}, now);
          });
      if (!args.is_each) kernel->info().workspace_bytes = static_cast<size_t>(args.rows) * sizeof(double);
      return kernel;
    });
  });
}

void CrossEntropyBackward::cuda(const Problem<Params>& p, Candidates& candidates) {
  cuda::dispatch_compute(p.in[1].dtype, [&]<class T>() {
    candidates.add("loop", [x = p.in[1], params = p.params, device = p.device] {
      const LossArgs<T> args = args_of<T>(x, params, device);
      return cuda::own("plumb:cross_entropy_backward", device, 1, [=](const cuda::Queue& q, const Launch& l) {
        LossArgs<T> now = args;
        now.dy = static_cast<const Compute<T>*>(l.in[0]);
        now.x = static_cast<const T*>(l.in[1]);
        now.labels = static_cast<const int64_t*>(l.in[2]);
        now.statistics = static_cast<Compute<T>*>(l.in[3]);
        now.dx = static_cast<T*>(l.out[0]);
        launch<T, true>(q, now);
      });
    });
  });
}

}  // namespace plumb
