#include "kernels/slice.h"

#include "kernels/cpu/movement/along.h"
#include "kernels/cpu/movement/convert.h"
#include "kernels/cpu/movement/copy_strided.h"

namespace plumb::cpu {
namespace {

// The extents of y in memory order, innermost first, and the range that x fills in each. A dimension that x fills
// completely is merged with the next outer one.
struct Box {
  int rank = 0;
  int64_t extent[kMaxRank] = {}, begin[kMaxRank] = {}, length[kMaxRank] = {};

  Box(const TensorSpec& x, const TensorSpec& y, const int64_t* at) {
    const DimOrder order = memory_order(y.layout, y.rank());
    for (int i = y.rank() - 1; i >= 0; --i) {
      const int d = order[i];
      int64_t size = 1;
      if (rank > 0 && length[rank - 1] == extent[rank - 1]) size = extent[--rank];
      extent[rank] = size * y.shape[d];
      begin[rank] = size * at[d];
      length[rank] = size * x.shape[d];
      ++rank;
    }
    if (rank == 0) extent[rank] = length[rank] = 1, ++rank;
  }
  bool holds(int d, int64_t i) const { return i >= begin[d] && i < begin[d] + length[d]; }
};

template <class T>
class PadKernel final : public Kernel {
 public:
  PadKernel(const Box& box, T value, int64_t n) : Kernel("plumb:pad"), box_(box), value_(value), n_(n) {
    // The loop runs over y's rows, with x's strides.
    int64_t stride = 1;
    for (int d = 0; d < box.rank; ++d) {
      const auto i = static_cast<size_t>(d);
      loop_.extent[d] = box.extent[d];
      loop_.stride[0][i] = stride;
      origin_ += box.begin[d] * stride;
      stride *= box.length[d];
    }
    filled_ = stride;
    loop_.rank = box.rank;
    std::fill_n(few_, kFew, value);
  }
  void run(const Launch& l) const override {
    const auto* x = static_cast<const T*>(l.in[0]);
    const auto write = [&](int64_t begin, int64_t end, T* to, const auto& copy) {
      for_runs(loop_, begin, end, [&](const RowPlace& row, int64_t i, int64_t n, int64_t rows) {
        // Rows [first, last) contain elements of x.
        int64_t first = 0, last = rows;
        if (box_.rank > 1) {
          first = std::clamp<int64_t>(box_.begin[1] - row.index[1], 0, rows);
          last = std::clamp<int64_t>(box_.begin[1] + box_.length[1] - row.index[1], first, rows);
        }
        for (int d = 2; d < box_.rank; ++d) last = box_.holds(d, row.index[d]) ? last : first;
        std::fill(to, to + first * n, value_);
        write_rows(x, row.at - origin_ + first * loop_.stride[0][1], i, n, last - first, to + first * n, copy);
        std::fill(to + last * n, to + rows * n, value_);
        to += rows * n;
      });
    };
    auto* const y = static_cast<T*>(l.out[0]);
    if (box_.length[0] * kSize >= kLongRun) return parallel_write_rows(y, n_, box_.length[0], write);
    const Source source{x, static_cast<double>(filled_) / static_cast<double>(n_)};
    parallel_write(y, n_, {&source, 1}, [&](int64_t begin, int64_t end, T* to) { write(begin, end, to, copy_rows); });
  }

 private:
  static constexpr int64_t kSize = sizeof(T), kFew = 16;

  // Writes the elements [i, i + n) of rows that contain elements of x; `at` is the offset in x that element 0 of the
  // first row corresponds to.
  template <class Copy>
  void write_rows(const T* x, int64_t at, int64_t i, int64_t n, int64_t rows, T* to, const Copy& copy) const {
    const int64_t from = std::clamp(box_.begin[0] - i, int64_t{0}, n);
    const int64_t until = std::clamp(box_.begin[0] + box_.length[0] - i, from, n);
    fill_rows(to, from, n, rows);
    if (until > from && rows > 0) {
      copy(bytes_of(to + from), n * kSize, bytes_of(x + (at + i + from)), loop_.stride[0][1] * kSize,
           (until - from) * kSize, rows);
    }
    fill_rows(to + until, n - until, n, rows);
  }
  void fill_rows(T* to, int64_t n, int64_t step, int64_t rows) const {
    if (n <= kFew) {
      copy_rows(bytes_of(to), step * kSize, bytes_of(few_), 0, n * kSize, rows);
    } else {
      for (int64_t r = 0; r < rows; ++r) std::fill_n(to + r * step, n, value_);
    }
  }
  static uint8_t* bytes_of(T* p) { return reinterpret_cast<uint8_t*>(p); }
  static const uint8_t* bytes_of(const T* p) { return reinterpret_cast<const uint8_t*>(p); }

  Box box_;
  StridedLoop<1> loop_;
  int64_t origin_ = 0, filled_ = 0;  // filled_: the elements of x
  T value_;
  T few_[kFew];  // filled with the value
  int64_t n_;
};

// A row of y consists of one run from each input.
class ConcatKernel final : public Kernel {
 public:
  ConcatKernel(std::vector<int64_t> runs, int64_t rows) : Kernel("plumb:concat"), runs_(std::move(runs)), rows_(rows) {
    for (const int64_t run : runs_) width_ += run;
  }
  void run(const Launch& l) const override {
    std::array<Source, kFetched> sources;
    const size_t fetched = std::min(sources.size(), runs_.size());
    for (size_t k = 0; k < fetched; ++k) {
      sources[k] = {l.in[k], static_cast<double>(runs_[k]) / static_cast<double>(width_)};
    }
    const auto write = [&](int64_t begin, int64_t end, uint8_t* to) {
      int64_t run_begin = 0;  // offset within the row
      for (size_t k = 0; k < runs_.size(); ++k) {
        write_run(static_cast<const uint8_t*>(l.in[k]), run_begin, runs_[k], begin, end, to);
        run_begin += runs_[k];
      }
    };
    parallel_write(static_cast<uint8_t*>(l.out[0]), rows_ * width_, std::span(sources).first(fetched), write);
  }

 private:
  // Writes the part of one input's runs in bytes [begin, end) of y; the first and last run may be cut.
  void write_run(const uint8_t* x, int64_t run_begin, int64_t length, int64_t begin, int64_t end, uint8_t* to) const {
    const auto write_cut = [&](int64_t row) {
      const int64_t at = row * width_ + run_begin, first = std::max(at, begin), last = std::min(at + length, end);
      if (first < last) copy_rows(to + (first - begin), 0, x + row * length + (first - at), 0, last - first, 1);
    };
    const int64_t first = begin / width_, last = (end - 1) / width_;
    write_cut(first);
    if (length > 0 && last - first > 1) {
      copy_rows(to + ((first + 1) * width_ + run_begin - begin), width_, x + (first + 1) * length, length, length,
                last - first - 1);
    }
    if (last > first) write_cut(last);
  }

  static constexpr size_t kFetched = 8;  // this many inputs have room on the stack
  std::vector<int64_t> runs_;            // bytes
  int64_t rows_, width_ = 0;
};

}  // namespace
}  // namespace plumb::cpu

namespace plumb {

void Slice::cpu(const Problem<Params>& p, Candidates& candidates) {
  const TensorSpec& y = p.out[0];
  const Strides strides = strides_of(p.in[0]);
  int64_t offset = 0;
  for (int d = 0; d < y.rank(); ++d) offset += p.params.begin[d] * strides[d];
  cpu::offer_in_order(candidates, {cpu::copy_strided(cpu::strided_loop<1>(y, {strides}), offset, y)});
}

void Pad::cpu(const Problem<Params>& p, Candidates& candidates) {
  const TensorSpec& y = p.out[0];
  const cpu::Box box(p.in[0], y, p.params.begin);
  dispatch_dtype(y.dtype, [&]<class T>() {
    const T value = cpu::convert<T>(static_cast<double>(p.params.value));
    candidates.add("rows", [=, n = y.numel()] { return std::make_unique<cpu::PadKernel<T>>(box, value, n); });
  });
}

void Concat::cpu(const Problem<Params>& p, Candidates& candidates) {
  const TensorSpec& y = p.out[0];
  const int dim = static_cast<int>(p.params.dim);
  const cpu::Along along(y, dim);
  const int64_t inner = along.inner * static_cast<int64_t>(size_of(y.dtype));
  std::vector<int64_t> runs;
  for (const TensorSpec& x : p.in) runs.push_back(inner * x.shape[dim]);
  candidates.add("rows", [=] { return std::make_unique<cpu::ConcatKernel>(runs, along.outer); });
}

}  // namespace plumb
