#include "kernels/index_select.h"

#include <atomic>
#include <limits>

#include "kernels/cpu/element.h"
#include "kernels/cpu/movement/along.h"
#include "kernels/cpu/movement/copy_strided.h"

namespace plumb::cpu {
namespace {

// Checked before all loops that use it, since an exception must not leave a parallel loop.
template <class Kind>
void check_index(const int64_t* index, int64_t n, int64_t slices) {
  std::atomic<bool> is_good = true;
  const auto fits = [&](int64_t i) { return static_cast<uint64_t>(index[i]) < static_cast<uint64_t>(slices); };
  parallel_for(n, kGrainBytes / static_cast<int64_t>(sizeof(int64_t)), [&](int64_t begin, int64_t end) {
    bool all = true;
    for (int64_t i = begin; i < end; ++i) all &= fits(i);
    if (!all) is_good = false;
  });
  if (is_good) return;
  for (int64_t i = 0; i < n; ++i) PLUMB_CHECK(fits(i), Kind::kBadIndex, i, index[i], slices);
}

// So many runs ahead their beginnings are prefetched: no processor foresees the next number.
constexpr int64_t kAhead = 16;

// Copies the runs of `from` with these numbers, `bytes` bytes each, one after another: kBlock of them at a time, the
// last of which may overlap the block before; kIsBlock says that a run is one block.
template <int64_t kBlock, bool kIsBlock>
void copy_numbered(uint8_t* to, const uint8_t* from, const int64_t* index, int64_t n, int64_t bytes) {
  const int64_t run = kIsBlock ? kBlock : bytes, last = run - kBlock;
  for (int64_t i = 0; i < n; ++i, to += run) {
    if constexpr (kBlock >= 16) simd::fetch(from, index[std::min(i + kAhead, n - 1)] * run);
    const uint8_t* x = from + index[i] * run;
    for (int64_t k = 0; k < last; k += kBlock) std::memcpy(to + k, x + k, kBlock);
    std::memcpy(to + last, x + last, kBlock);
  }
}
template <int64_t kBlock>
auto copy_numbered_by(int64_t bytes) {
  return bytes == kBlock ? copy_numbered<kBlock, true> : copy_numbered<kBlock, false>;
}
auto copy_numbered_for(int64_t bytes) {
  return bytes >= 64   ? copy_numbered_by<64>(bytes)
         : bytes >= 16 ? copy_numbered_by<16>(bytes)
         : bytes >= 8  ? copy_numbered_by<8>(bytes)
         : bytes >= 4  ? copy_numbered_by<4>(bytes)
         : bytes >= 2  ? copy_numbered_by<2>(bytes)
                       : copy_numbered_by<1>(bytes);
}

// y consists of runs of `bytes` bytes: n of them for every `slices` of x.
class SelectKernel final : public Kernel {
 public:
  SelectKernel(const Along& x, int64_t n, int64_t element)
      : Kernel("plumb:index_select"), slices_(x.extent), n_(n), rows_(x.outer * n), bytes_(x.inner * element) {}
  void run(const Launch& l) const override {
    const auto* x = static_cast<const uint8_t*>(l.in[0]);
    const auto* index = static_cast<const int64_t*>(l.in[1]);
    auto* y = static_cast<uint8_t*>(l.out[0]);
    check_index<IndexSelect>(index, n_, slices_);
    if (rows_ * bytes_ == 0) return;
    bytes_ >= kLongRun ? write_long(x, index, y) : write_short(x, index, y);
  }

 private:
  void write_short(const uint8_t* x, const int64_t* index, uint8_t* y) const {
    const auto copy = copy_numbered_for(bytes_);
    parallel_for(rows_, kGrainBytes / bytes_, [&](int64_t begin, int64_t end) {
      int64_t outer = begin / n_, i = begin % n_;
      for (int64_t now; begin < end; begin += now, i = 0, ++outer) {
        now = std::min(n_ - i, end - begin);
        copy(y + begin * bytes_, x + outer * slices_ * bytes_, index + i, now, bytes_);
      }
    });
  }
  // Threads may share a run.
  void write_long(const uint8_t* x, const int64_t* index, uint8_t* y) const {
    const auto source = [&](int64_t row) { return x + (row / n_ * slices_ + index[row % n_]) * bytes_; };
    parallel_write_rows(y, rows_ * bytes_, bytes_, [&](int64_t begin, int64_t end, uint8_t* to, const auto& copy) {
      for (int64_t now; begin < end; begin += now, to += now) {
        const int64_t row = begin / bytes_, at = begin % bytes_;
        now = std::min(bytes_ - at, end - begin);
        copy(to, 0, source(row) + at, 0, now, 1);
      }
    });
  }

  int64_t slices_, n_, rows_, bytes_;
};

// Runs are added one after another to what is zero at first; the threads share what lies around the dimension. bf16 is
// summed in f32, in memory of each thread's own.
template <class T, bool kIsOne>
class AddKernel final : public Kernel {
 public:
  AddKernel(const Along& x, int64_t n, int threads)
      : Kernel("plumb:index_add"), x_(x), n_(n), all_(x.extent * x.inner) {
    const int64_t bytes = x.outer * (all_ + n * x.inner) * static_cast<int64_t>(sizeof(T));
    team_ = static_cast<int>(std::min<int64_t>({threads, x.outer, ceil_div(bytes, kGrainBytes)}));
    if (kRounds) info().workspace_bytes = static_cast<size_t>(team_ * all_) * sizeof(C);
  }
  void run(const Launch& l) const override {
    const auto* dy = static_cast<const T*>(l.in[0]);
    const auto* index = static_cast<const int64_t*>(l.in[1]);
    auto* dx = static_cast<T*>(l.out[0]);
    check_index<IndexAdd>(index, n_, x_.extent);
    parallel_team(team_, [&](int thread, int threads) {
      const auto [begin, end] = piece(x_.outer, thread, threads);
      for (int64_t outer = begin; outer < end; ++outer) {
        T* const to = dx + outer * all_;
        if constexpr (kRounds) {
          C* const sums = static_cast<C*>(l.workspace) + thread * all_;
          add(dy + outer * n_ * x_.inner, index, sums);
#pragma GCC ivdep
          for (int64_t j = 0; j < all_; ++j) store(to + j, sums[j]);
        } else {
          add(dy + outer * n_ * x_.inner, index, to);
        }
      }
    });
  }

 private:
  using C = Compute<T>;
  static constexpr bool kRounds = !std::is_same_v<T, C>;

  void add(const T* dy, const int64_t* index, C* sums) const {
    const int64_t width = kIsOne ? 1 : x_.inner, bytes = width * static_cast<int64_t>(sizeof(C));
    std::fill_n(sums, all_, C(0));
    for (int64_t i = 0; i < n_; ++i, dy += width) {
      if constexpr (!kIsOne) simd::fetch(sums, index[std::min(i + kAhead, n_ - 1)] * bytes);
      C* const sum = sums + index[i] * width;
      for (int64_t j = 0; j < width; ++j) sum[j] += load(dy + j);
    }
  }

  Along x_;
  int64_t n_, all_;  // all_: the elements that lie within the dimension, all slices together
  int team_ = 1;
};

// The runs of dy with each index as a list, in their order: the number of the first, and for each the next one's, or
// -1.
class Lists {
 public:
  static size_t bytes(int64_t slices, int64_t n) { return static_cast<size_t>(slices + n) * sizeof(int32_t); }
  Lists(void* memory, const int64_t* index, int64_t slices, int64_t n)
      : first_(static_cast<int32_t*>(memory)), next_(first_ + slices) {
    std::fill_n(first_, slices, -1);
    for (int64_t i = n - 1; i >= 0; --i) next_[i] = std::exchange(first_[index[i]], static_cast<int32_t>(i));
  }
  int32_t first(int64_t slice) const { return first_[slice]; }
  int32_t next(int32_t i) const { return next_[i]; }
  /// Prefetches what the list of a slice begins with: its link, and its run, which are `step` bytes apart in `runs`.
  void fetch(int64_t slice, const void* runs, int64_t step) const {
    simd::fetch(next_, first_[slice] * static_cast<int64_t>(sizeof(int32_t)));
    simd::fetch(runs, first_[slice] * step);
  }

 private:
  int32_t *first_, *next_;
};

// n elements of the sum of a list's runs, which are `step` elements apart.
template <class T>
void sum_list(const T* dy, int64_t step, const Lists& lists, int32_t first, int64_t n, T* to) {
  using C = Compute<T>;
  if (first < 0) {
    std::fill_n(to, n, T(C(0)));
    return;
  }
  if (lists.next(first) < 0) {
    const T* from = dy + first * step;
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) store(to + j, C(0) + load(from + j));  // a sum is never -0
    return;
  }
  constexpr int64_t kBlock = 256;
  C sums[kBlock];
  for (int64_t at = 0, now; at < n; at += now) {
    now = std::min(kBlock, n - at);
    std::fill_n(sums, now, C(0));
    for (int32_t i = first; i >= 0; i = lists.next(i)) {
      const T* from = dy + i * step + at;
      for (int64_t j = 0; j < now; ++j) sums[j] += load(from + j);
    }
#pragma GCC ivdep
    for (int64_t j = 0; j < now; ++j) store(to + at + j, sums[j]);
  }
}

// Runs are written once, each the sum of a list, by all threads wherever they lie.
template <class T>
std::unique_ptr<Kernel> lists_kernel(const Along& x, int64_t n) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (x.extent > kMost || n > kMost) return nullptr;
  auto kernel = make_kernel("plumb:index_add:lists", [=](const Launch& l) {
    const auto* dy = static_cast<const T*>(l.in[0]);
    const auto* index = static_cast<const int64_t*>(l.in[1]);
    check_index<IndexAdd>(index, n, x.extent);
    const Lists lists(l.workspace, index, x.extent, n);
    const int64_t count = x.outer * x.extent * x.inner;
    parallel_write(static_cast<T*>(l.out[0]), count, [&](int64_t begin, int64_t end, T* to) {
      int64_t at = begin % x.inner, slice = begin / x.inner % x.extent, outer = begin / x.inner / x.extent;
      for (int64_t now; begin < end; begin += now, to += now, at = 0) {
        now = std::min(x.inner - at, end - begin);
        const T* const runs = dy + outer * n * x.inner;
        lists.fetch(std::min(slice + kAhead, x.extent - 1), runs, x.inner * static_cast<int64_t>(sizeof(T)));
        sum_list(runs + at, x.inner, lists, lists.first(slice), now, to);
        if (++slice == x.extent) slice = 0, ++outer;
      }
    });
  });
  kernel->info().workspace_bytes = Lists::bytes(x.extent, n);
  return kernel;
}

}  // namespace
}  // namespace plumb::cpu

namespace plumb {

void IndexSelect::cpu(const Problem<Params>& p, Candidates& candidates) {
  const cpu::Along x(p.in[0], static_cast<int>(p.params.dim));
  const auto element = static_cast<int64_t>(size_of(p.in[0].dtype));
  candidates.add("runs", [=, n = p.in[1].numel()] { return std::make_unique<cpu::SelectKernel>(x, n, element); });
}

void IndexAdd::cpu(const Problem<Params>& p, Candidates& candidates) {
  const cpu::Along x(p.out[0], static_cast<int>(p.params.dim));
  cpu::dispatch_compute(p.out[0].dtype, [&]<class T>() {
    const auto make_rows = [=, n = p.in[1].numel(), threads = p.threads]() -> std::unique_ptr<Kernel> {
      if (x.inner == 1) return std::make_unique<cpu::AddKernel<T, true>>(x, n, threads);
      return std::make_unique<cpu::AddKernel<T, false>>(x, n, threads);
    };
    const auto make_lists = [=, n = p.in[1].numel()] { return cpu::lists_kernel<T>(x, n); };
    // A list costs as much as a short run; and sums that stay in a cache may as well be added to one by one.
    constexpr int64_t kShort = 64, kCached = 128 << 10;
    const int64_t run = x.inner * static_cast<int64_t>(sizeof(cpu::Compute<T>));
    const bool by_rows = run <= kShort || (x.outer >= p.threads && x.extent * run <= kCached);
    by_rows ? candidates.add("rows", make_rows) : candidates.add("lists", make_lists);
  });
}

}  // namespace plumb
