#include "kernels/cpu/movement/copy_strided.h"
#include "kernels/cpu/movement/transpose_tiles.h"
#include "kernels/cpu/nontemporal.h"

namespace plumb::cpu {
namespace {

// Dimensions that are contiguous in one operand, treated as a single one, with their steps in the other operand.
struct Chain {
  int rank = 0;
  int64_t extent[kMaxRank] = {}, step[kMaxRank] = {}, total = 1;

  void append(int64_t n, int64_t s) {
    extent[rank] = n;
    step[rank++] = s;
    total *= n;
  }
  int64_t widest_step() const { return *std::max_element(step, step + rank); }
  void positions(int64_t first, int64_t n, int64_t origin, int64_t* at) const {
    for (int64_t k = 0, run; k < n; k += run) {
      int64_t rest = first + k, start = origin;
      for (int d = 0; d < rank; ++d) {
        start += rest % extent[d] * step[d];
        rest /= extent[d];
      }
      run = std::min(n - k, extent[0] - (first + k) % extent[0]);
      for (int64_t r = 0; r < run; ++r) at[k + r] = start + r * step[0];
    }
  }
};

// A chain cut into pieces of `size`. The rest is a piece of its own, or joins the last piece if smaller than a tile.
struct Pieces {
  int64_t extent = 0, size = 0, count = 0;
  Pieces() = default;
  Pieces(int64_t all, int64_t piece, int64_t tile)
      : extent(all), size(std::min(all, piece)), count(all / size + (all % size >= tile)) {}
  int64_t begin(int64_t i) const { return i * size; }
  int64_t length(int64_t i) const { return i + 1 == count ? extent - begin(i) : size; }
};

// Dimension 0 of the loop is innermost in y, dimension `j` in x. These two dimensions, extended by their neighbours if
// they are short, span matrices, which are transposed panel by panel. The other dimensions enumerate the matrices.
template <class T>
class TransposeKernel final : public Kernel {
 public:
  TransposeKernel(const StridedLoop<1>& loop, int j, int64_t offset, int64_t n)
      : Kernel("plumb:transpose"), offset_(offset) {
    int64_t y_stride[kMaxRank] = {1};
    for (int d = 1; d < loop.rank; ++d) y_stride[d] = y_stride[d - 1] * loop.extent[d - 1];
    const auto x_stride = [&](int d) { return loop.stride[0][static_cast<size_t>(d)]; };
    bool taken[kMaxRank] = {};
    const auto take = [&](Chain& c, int d, int64_t step) {
      c.append(loop.extent[d], step);
      taken[d] = true;
    };
    take(of_i_, 0, x_stride(0));
    take(of_j_, j, y_stride[j]);
    for (int d = 1; d < loop.rank; ++d) {  // find the next dimension of x, wherever it is in y
      for (int e = 1; e < loop.rank; ++e) {
        if (!taken[e] && x_stride(e) == of_j_.total && of_j_.total < kTile<T>) take(of_j_, e, y_stride[e]);
      }
    }
    for (int d = 1; d < loop.rank && !taken[d] && of_i_.total < kTile<T>; ++d) take(of_i_, d, x_stride(d));
    // Scattered writes are limited by memory sooner than contiguous ones, hence the lower threshold.
    streams_ = n * kSize >= (is_narrow() ? nontemporal_bytes : nontemporal_bytes / 4);
    cut();
    panels_ = i_.count * j_.count;
    for (int d = 0; d < loop.rank; ++d) {
      if (taken[d]) continue;
      outer_[outer_rank_++] = {loop.extent[d], x_stride(d), y_stride[d]};
      panels_ *= loop.extent[d];
    }
    along_x_ = of_i_.widest_step() > (streams_ ? i_.size : of_j_.widest_step());
  }
  void run(const Launch& l) const override {
    const T* x = static_cast<const T*>(l.in[0]) + offset_;
    auto* y = static_cast<T*>(l.out[0]);
    const int64_t grain = std::max<int64_t>(1, kGrainBytes / (i_.size * j_.size * kSize));
    parallel_for(panels_, grain, [&](int64_t begin, int64_t end) {
      if (is_narrow()) {
        for (int64_t k = begin, n; k < end; k += n) {
          n = neighbours(k, end);
          Panel p = panel(k);
          for (int64_t i = 0; i < n; ++i, p.x += outer_[0].x_stride, p.y += outer_[0].y_stride) write_narrow(p, x, y);
        }
      } else {
        write_panels(begin, end, x, y);
      }
      if (streams_) nontemporal_fence();
    });
  }

 private:
  static constexpr int64_t kSize = sizeof(T);
  static constexpr int64_t kSegment = 256 / kSize;        // a piece of a long row
  static constexpr int64_t kShort = 2048 / kSize;         // longer rows are cut
  static constexpr int64_t kPanel = (16 << 10) / kSize;   // elements that are worth the overhead of a panel
  static constexpr int64_t kStaged = (64 << 10) / kSize;  // the largest panel, before last pieces absorb a rest

  struct Outer {
    int64_t extent, x_stride, y_stride;
  };
  struct Panel {
    int64_t x, y;            // offsets of the panel's matrix
    int64_t i, j, i_n, j_n;  // the panel's corner and extents in it
  };

  bool is_narrow() const { return std::min(of_i_.total, of_j_.total) < kTile<T> && of_i_.rank == 1 && of_j_.rank == 1; }

  void cut() {
    const int64_t I = of_i_.total, J = of_j_.total, longest = is_narrow() ? kPanel : kShort;
    int64_t i = I <= kShort ? I : kSegment, j = J <= kShort ? J : kSegment;
    if (i * j > kStaged) j = std::min(j, kSegment);
    if (i * j > kStaged) i = std::min(i, kSegment);
    if (j < J) j = std::clamp(kPanel / i / 64 * 64, j, longest);
    if (i < I) i = std::clamp(kPanel / j / 64 * 64, i, longest);
    i_ = Pieces(I, i, kTile<T>);
    j_ = Pieces(J, j, kTile<T>);
  }

  Panel panel(int64_t k) const {
    const int64_t i = k % i_.count, j = k / i_.count % j_.count;
    Panel p{0, 0, i_.begin(i), j_.begin(j), i_.length(i), j_.length(j)};
    int64_t rest = k / (i_.count * j_.count);
    for (int d = 0; d < outer_rank_; ++d) {
      p.x += rest % outer_[d].extent * outer_[d].x_stride;
      p.y += rest % outer_[d].extent * outer_[d].y_stride;
      rest /= outer_[d].extent;
    }
    return p;
  }

  // How many panels from k on, but before `end`, are whole matrices a stride apart: to find each would take longer than
  // to transpose it.
  int64_t neighbours(int64_t k, int64_t end) const {
    if (i_.count * j_.count > 1 || outer_rank_ == 0) return 1;
    return std::min(end - k, outer_[0].extent - k % outer_[0].extent);
  }

  void write_narrow(const Panel& p, const T* x, T* y) const {
    const int64_t x_step = of_i_.step[0], y_step = of_j_.step[0];
    x += p.x + p.i * x_step + p.j;
    y += p.y + p.j * y_step + p.i;
    if (!streams_) return transpose_narrow(x, x_step, y, y_step, p.i_n, p.j_n);
    alignas(64) T stage[2 * kStaged];
    transpose_narrow(x, x_step, stage, p.i_n, p.i_n, p.j_n);
    if (y_step == p.i_n) return stream_elements(y, stage, p.i_n * p.j_n);
    for (int64_t j = 0; j < p.j_n; ++j) stream_elements(y + j * y_step, stage + j * p.i_n, p.i_n);
  }

  void write_panels(int64_t begin, int64_t end, const T* x, T* y) const {
    constexpr int64_t kRows = kShort + kTile<T>;
    int64_t x_rows[2][kRows], y_rows[kRows], stage_rows[kRows];
    alignas(64) T stage[2 * kStaged];
    Panel p = panel(begin);
    of_i_.positions(p.i, p.i_n, p.x + p.j, x_rows[begin & 1]);
    for (int64_t k = begin; k < end; ++k) {
      const Panel next = panel(std::min(k + 1, panels_ - 1));
      of_i_.positions(next.i, next.i_n, next.x + next.j, x_rows[(k + 1) & 1]);
      of_j_.positions(p.j, p.j_n, p.y + p.i, y_rows);
      const Rows<const T> from{x, x_rows[k & 1], p.i_n}, ahead{x, x_rows[(k + 1) & 1], next.i_n};
      if (streams_) {
        for (int64_t j = 0; j < p.j_n; ++j) stage_rows[j] = j * p.i_n;
        write(from, {stage, stage_rows, p.j_n}, ahead);
        const bool dense = of_j_.rank == 1 && of_j_.step[0] == p.i_n;
        for (int64_t j = 0; j < (dense ? 1 : p.j_n); ++j) {
          stream_elements(y + y_rows[j], stage + stage_rows[j], dense ? p.i_n * p.j_n : p.i_n);
        }
      } else {
        write(from, {y, y_rows, p.j_n}, ahead);
      }
      p = next;
    }
  }
  void write(const Rows<const T>& x, const Rows<T>& y, const Rows<const T>& next) const {
    if (x.count >= kTile<T> && y.count >= kTile<T>) return transpose_tiles(x, y, next, along_x_);
    transpose_elements(x, y);
  }
  static void stream_elements(T* to, const T* from, int64_t n) {
    copy_nontemporal(reinterpret_cast<uint8_t*>(to), reinterpret_cast<const uint8_t*>(from), n * kSize);
  }

  int64_t offset_;
  bool streams_ = false, along_x_ = false;
  Chain of_i_, of_j_;  // contiguous in y, with steps in x; and contiguous in x, with steps in y
  Pieces i_, j_;
  Outer outer_[kMaxRank] = {};
  int outer_rank_ = 0;
  int64_t panels_;
};

}  // namespace

std::unique_ptr<Kernel> transpose_kernel(const StridedLoop<1>& loop, int j, int64_t offset, const TensorSpec& y) {
  return dispatch_size(size_of(y.dtype), [&]<class T>() -> std::unique_ptr<Kernel> {
    return std::make_unique<TransposeKernel<T>>(loop, j, offset, y.numel());
  });
}

}  // namespace plumb::cpu
