// Cross entropy of rows, which those who share one keep in registers, or read again where it is too long for that. A
// label out of range gives NaN, and a sentence to the host.
#include "kernels/cross_entropy.h"

#include "kernels/cuda/softmax/kept.cuh"

namespace plumb {
namespace {

namespace math = functors::math;
using cuda::ByBlock;
using cuda::Compute;
using cuda::kRowThreads;
using cuda::kWarp;
using cuda::Piece;
using cuda::kept::Share;

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
  unsigned log;  // of the lanes that share a row
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

/// What the loss of a row needs beside its statistics. One of those who share the row reads it while the rest of the
/// row is under way: afterwards they would wait for memory twice more.
template <class T>
struct Target {
  int64_t label = -1;
  Compute<T> x = 0;

  __device__ void load_label(const LossArgs<T>& a, int64_t row) { label = cuda::get(a.labels + row); }
  __device__ void load_x(const LossArgs<T>& a, int64_t row) {
    if (check_label(a, row, label, false)) x = cuda::load(a.x + row * a.classes + label);
  }
};

/// The loss of a row, by the one who has its target.
template <class T>
__device__ void put_loss(const LossArgs<T>& a, int64_t row, const Target<T>& target, Compute<T> largest,
                         Compute<T> sum) {
  using C = Compute<T>;
  C of_row = std::numeric_limits<C>::quiet_NaN();
  double value = std::numeric_limits<double>::quiet_NaN(), log_sum = value;
  if (check_label(a, row, target.label, true)) {
    of_row = largest;
    log_sum = math::log(static_cast<double>(sum));
    value = log_sum - static_cast<double>(target.x - largest);
  }
  a.statistics[2 * row] = of_row;
  a.statistics[2 * row + 1] = static_cast<C>(log_sum);
  if (a.is_each) {
    a.loss[row] = static_cast<C>(value);
  } else {
    a.losses[row] = value;
  }
}

template <int kEach, int kPieces, class T, class Who>
__device__ void forward_row(const LossArgs<T>& a, const Who& who, int64_t row, bool is_there) {
  const int classes = is_there ? static_cast<int>(a.classes) : 0;
  const bool puts = who.first() == 0 && is_there;
  Share<T, kEach, kPieces> x;
  Target<T> target;
  if (puts) target.load_label(a, row);
  x.load(who, a.x + row * a.classes, classes);
  if (puts) target.load_x(a, row);
  const auto [largest, sum] = exponentials(who, x, classes);
  if (puts) put_loss(a, row, target, largest, sum);
}

/// What a row's gradient is made of.
template <class T>
struct BackwardRow {
  using C = Compute<T>;
  int64_t label;
  C largest, log_sum, scale;
  __device__ BackwardRow(const LossArgs<T>& a, int64_t row, bool tells)
      : label(cuda::get(a.labels + row)),
        largest(cuda::get(a.statistics + 2 * row)),
        log_sum(cuda::get(a.statistics + 2 * row + 1)),
        scale(cuda::get(a.dy + (a.is_each ? row : 0)) / (a.is_mean ? static_cast<C>(a.rows) : C(1))) {
    if (!check_label(a, row, label, tells)) scale = std::numeric_limits<C>::quiet_NaN();
  }
  template <int kEach>
  __device__ Piece<T, kEach> gradient(const Piece<T, kEach>& x, int64_t i) const {
    const int64_t at = label - i;  // in this piece, perhaps
    Piece<T, kEach> dx;
    for (int j = 0; j < kEach; ++j) {
      const C softmax = cuda::kept::power_below<T>((cuda::wide(x.of[j]) - largest) - log_sum);
      dx.of[j] = cuda::rounded<T>((at == j ? softmax - C(1) : softmax) * scale);
    }
    return dx;
  }
};

template <int kEach, int kPieces, class T, class Who>
__device__ void backward_row(const LossArgs<T>& a, const Who& who, int64_t row, bool is_there) {
  if (!is_there) return;
  const int64_t first = row * a.classes;
  const int classes = static_cast<int>(a.classes);
  Share<T, kEach, kPieces> x;
  x.load(who, a.x + first, classes);
  const BackwardRow<T> of_row(a, row, who.first() == 0);
  x.each(who, classes,
         [&](int k, int i) { cuda::store_piece(a.dx + first + i, of_row.gradient(x.of[k].elements(), i)); });
}

template <bool kBackward, int kEach, int kPieces, class T, class Who>
__device__ void row_of(const LossArgs<T>& a, const Who& who, int64_t row, bool is_there) {
  if constexpr (kBackward) {
    backward_row<kEach, kPieces>(a, who, row, is_there);
  } else {
    forward_row<kEach, kPieces>(a, who, row, is_there);
  }
}

template <class T, bool kBackward, int kEach, int kPieces>
__global__ void __launch_bounds__(kRowThreads, 2) cross_entropy_by_lanes_kernel(const LossArgs<T> a) {
  cuda::kept::for_lines_of_lanes(a.rows, a.log, [&](const auto& who, int64_t row, bool is_there) {
    row_of<kBackward, kEach, kPieces>(a, who, row, is_there);
  });
}
template <class T, bool kBackward, int kEach, int kPieces>
__global__ void __launch_bounds__(kRowThreads, 2) cross_entropy_by_whole_blocks_kernel(const LossArgs<T> a) {
  const cuda::kept::ByWholeBlock<Compute<T>> who{cuda::shared<cuda::RowShared<Compute<T>>>()};
#pragma unroll 1
  for (int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) row_of<kBackward, kEach, kPieces>(a, who, row, true);
}
/// Rows that are too long for registers.
template <class T, bool kBackward, int kEach>
__global__ void __launch_bounds__(kRowThreads, cuda::kFewBlocks) cross_entropy_by_blocks_kernel(const LossArgs<T> a) {
  if constexpr (kBackward) {
#pragma unroll 1
    for (int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
      const int64_t first = row * a.classes;
      const BackwardRow<T> of_row(a, row, threadIdx.x == 0);
      cuda::for_pieces<ByBlock, kEach>(a.x + first, a.classes, 1, [&](int64_t i, const Piece<T, kEach>& x) {
        cuda::store_piece(a.dx + first + i, of_row.gradient(x, i));
      });
    }
  } else {
    auto& s = cuda::shared<cuda::RowShared<Compute<T>>>();
#pragma unroll 1
    for (int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
      Target<T> target;
      if (threadIdx.x == 0) target.load_label(a, row), target.load_x(a, row);
      const auto [largest, sum] = cuda::exponentials<ByBlock, kEach>(a.x + row * a.classes, a.classes, 1, &s);
      if (threadIdx.x == 0) put_loss(a, row, target, largest, sum);
    }
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

// How rows are gone over; says so in the arguments, too.
template <class T, bool kBackward, int kEach>
cuda::kept::Way<LossArgs<T>> way_in(const Runtime& r, LossArgs<T>& a) {
  using P = cuda::kept::Plan<T, kEach>;
  const P plan(a.classes);
  a.log = plan.log;
  return plan.template way<LossArgs<T>, cross_entropy_by_lanes_kernel<T, kBackward, kEach, P::kFew>,
                           cross_entropy_by_lanes_kernel<T, kBackward, kEach, P::kMany>,
                           cross_entropy_by_whole_blocks_kernel<T, kBackward, kEach, P::kFew>,
                           cross_entropy_by_whole_blocks_kernel<T, kBackward, kEach, P::kMany>,
                           cross_entropy_by_blocks_kernel<T, kBackward, kEach>>(r, a.rows);
}
// 16 bytes at a time if every row begins at a multiple of that.
template <class T, bool kBackward>
cuda::kept::Way<LossArgs<T>> way_of(const Runtime& r, LossArgs<T>& a) {
  constexpr int kEach = cuda::Vector<T>::kSize;
  return a.classes % kEach == 0 ? way_in<T, kBackward, kEach>(r, a) : way_in<T, kBackward, 1>(r, a);
}

}  // namespace

void CrossEntropyForward::cuda(const Problem<Params>& p, Candidates& candidates) {
  cuda::dispatch_compute(p.in[0].dtype, [&]<class T>() {
    candidates.add("loop", [x = p.in[0], params = p.params, device = p.device] {
      LossArgs<T> args = args_of<T>(x, params, device);
      const auto way = way_of<T, false>(runtime_of(device), args);
      auto kernel =
          cuda::own("plumb:cross_entropy", device, args.is_each ? 1 : 2, [=](const cuda::Queue& q, const Launch& l) {
            LossArgs<T> now = args;
            now.x = static_cast<const T*>(l.in[0]);
            now.labels = static_cast<const int64_t*>(l.in[1]);
            now.loss = static_cast<Compute<T>*>(l.out[0]);
            now.statistics = static_cast<Compute<T>*>(l.out[1]);
            now.losses = static_cast<double*>(l.workspace);
            way.launch(q, now);
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
      LossArgs<T> args = args_of<T>(x, params, device);
      const auto way = way_of<T, true>(runtime_of(device), args);
      return cuda::own("plumb:cross_entropy_backward", device, 1, [=](const cuda::Queue& q, const Launch& l) {
        LossArgs<T> now = args;
        now.dy = static_cast<const Compute<T>*>(l.in[0]);
        now.x = static_cast<const T*>(l.in[1]);
        now.labels = static_cast<const int64_t*>(l.in[2]);
        now.statistics = static_cast<Compute<T>*>(l.in[3]);
        now.dx = static_cast<T*>(l.out[0]);
        way.launch(q, now);
      });
    });
  });
}

}  // namespace plumb
