// Cross entropy of rows: a warp a row, or a block for long ones. A label out of range gives NaN, and a sentence to the host.
#include "kernels/cross_entropy.h"

#include <limits>

#include "kernels/cuda/element.h"
#include "kernels/cuda/launch.h"
#include "kernels/functors/math.h"

namespace plumb {
namespace {

namespace math = functors::math;
using cuda::Compute;
using cuda::kWarp;

constexpr unsigned kThreads = 256;
constexpr int64_t kLeastOfBlock = 1024;
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

// The value of all who share a row, in each of them.
template <bool kByBlock, class C, class Combine>
__device__ C of_row(C v, C* of_warps, const Combine& combine) {
  if constexpr (kByBlock) {
    return cuda::block_combine(v, of_warps, combine);
  } else {
    return cuda::warp_combine(v, combine);
  }
}
template <class C>
struct LossShared {
  C of_warps[kThreads / kWarp];
};

template <bool kByBlock, class T>
__device__ void forward_row(const LossArgs<T>& a, int64_t row, Compute<T>* of_warps) {
  using C = Compute<T>;
  const unsigned first = kByBlock ? threadIdx.x : threadIdx.x % kWarp, step = kByBlock ? kThreads : kWarp;
  const T* const x = a.x + row * a.classes;
  C largest = -std::numeric_limits<C>::infinity(), sum = 0;
  for (int64_t k = first; k < a.classes; k += step) largest = cuda::Largest()(largest, cuda::load(x + k));
  largest = of_row<kByBlock>(largest, of_warps, cuda::Largest());
  for (int64_t k = first; k < a.classes; k += step) sum += math::exp(cuda::load(x + k) - largest);
  sum = of_row<kByBlock>(sum, of_warps, cuda::Sum());
  if (first != 0) return;
  const int64_t label = a.labels[row];
  double value = std::numeric_limits<double>::quiet_NaN(), log_sum = value;
  if (check_label(a, row, label, true)) {
    log_sum = math::log(static_cast<double>(sum));
    value = log_sum - static_cast<double>(cuda::load(x + label) - largest);
  }
  a.statistics[2 * row] = largest;
  a.statistics[2 * row + 1] = static_cast<C>(log_sum);
  if (a.is_each) {
    a.loss[row] = static_cast<C>(value);
  } else {
    a.losses[row] = value;
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads) cross_entropy_by_warps_kernel(const LossArgs<T> a) {
  for (int64_t row = cuda::thread_of_grid() / kWarp; row < a.rows; row += cuda::threads_of_grid() / kWarp)
    forward_row<false>(a, row, static_cast<Compute<T>*>(nullptr));
}
template <class T>
__global__ void __launch_bounds__(kThreads) cross_entropy_by_blocks_kernel(const LossArgs<T> a) {
  auto& s = cuda::shared<LossShared<Compute<T>>>();
  for (int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) forward_row<true>(a, row, s.of_warps);
}

// One block: the losses of the rows together.
template <class T>
__global__ void __launch_bounds__(kThreads) cross_entropy_sum_kernel(const LossArgs<T> a) {
  auto& s = cuda::shared<LossShared<double>>();
  double sum = 0;
  for (int64_t row = threadIdx.x; row < a.rows; row += kThreads) sum += a.losses[row];
  sum = cuda::block_combine(sum, s.of_warps, cuda::Sum());
  if (threadIdx.x == 0) *a.loss = static_cast<Compute<T>>(a.is_mean ? sum / static_cast<double>(a.rows) : sum);
}

template <class T>
__global__ void __launch_bounds__(kThreads) cross_entropy_backward_kernel(const LossArgs<T> a) {
  using C = Compute<T>;
  const unsigned lane = threadIdx.x % kWarp;
  const C count = a.is_mean ? static_cast<C>(a.rows) : C(1);
  for (int64_t row = cuda::thread_of_grid() / kWarp; row < a.rows; row += cuda::threads_of_grid() / kWarp) {
    const int64_t label = a.labels[row];
    const bool is_good = check_label(a, row, label, lane == 0);
    const C largest = a.statistics[2 * row], log_sum = a.statistics[2 * row + 1];
    const C d = is_good ? a.dy[a.is_each ? row : 0] / count : std::numeric_limits<C>::quiet_NaN();
    for (int64_t k = lane; k < a.classes; k += kWarp) {
      const C softmax = math::exp((cuda::load(a.x + row * a.classes + k) - largest) - log_sum);
      cuda::store(a.dx + row * a.classes + k, (k == label ? softmax - C(1) : softmax) * d);
    }
  }
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

cuda::Grid grid_of_rows(const Runtime& r, int64_t rows) {
  constexpr int64_t kRowsOfBlock = kThreads / kWarp;
  return cuda::grid_of(r, (rows + kRowsOfBlock - 1) / kRowsOfBlock, kThreads);
}

}  // namespace

void CrossEntropyForward::cuda(const Problem<Params>& p, Candidates& candidates) {
  cuda::dispatch_computed(p.in[0].dtype, [&]<class T>() {
    candidates.add("loop", [x = p.in[0], params = p.params, device = p.device] {
      const LossArgs<T> args = args_of<T>(x, params, device);
      auto kernel = cuda::own("plumb:cross_entropy", device, args.is_each ? 1 : 2, [=](const cuda::Queue& q, const Launch& l) {
        LossArgs<T> now = args;
        now.x = static_cast<const T*>(l.in[0]);
        now.labels = static_cast<const int64_t*>(l.in[1]);
        now.loss = static_cast<Compute<T>*>(l.out[0]);
        now.statistics = static_cast<Compute<T>*>(l.out[1]);
        now.losses = static_cast<double*>(l.workspace);
        if (now.classes < kLeastOfBlock) {
          q.launch<cross_entropy_by_warps_kernel<T>>(grid_of_rows(q.runtime(), now.rows), now);
        } else {
          q.launch<cross_entropy_by_blocks_kernel<T>>(cuda::grid_of(q.runtime(), now.rows, kThreads), now);
        }
        if (!now.is_each) q.launch<cross_entropy_sum_kernel<T>>(cuda::Grid{{1}, {kThreads}}, now);
      });
      if (!args.is_each) kernel->info().workspace_bytes = static_cast<size_t>(args.rows) * sizeof(double);
      return kernel;
    });
  });
}

void CrossEntropyBackward::cuda(const Problem<Params>& p, Candidates& candidates) {
  cuda::dispatch_computed(p.in[1].dtype, [&]<class T>() {
    candidates.add("loop", [x = p.in[1], params = p.params, device = p.device] {
      const LossArgs<T> args = args_of<T>(x, params, device);
      return cuda::own("plumb:cross_entropy_backward", device, 1, [=](const cuda::Queue& q, const Launch& l) {
        LossArgs<T> now = args;
        now.dy = static_cast<const Compute<T>*>(l.in[0]);
        now.x = static_cast<const T*>(l.in[1]);
        now.labels = static_cast<const int64_t*>(l.in[2]);
        now.statistics = static_cast<Compute<T>*>(l.in[3]);
        now.dx = static_cast<T*>(l.out[0]);
        q.launch<cross_entropy_backward_kernel<T>>(grid_of_rows(q.runtime(), now.rows), now);
      });
    });
  });
}

}  // namespace plumb
