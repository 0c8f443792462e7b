#include "kernels/cpu/pooling/pool2d_planes.h"

#include "kernels/cpu/movement/transpose_tiles.h"
#include "kernels/cpu/parallel.h"

namespace plumb::cpu::pool {
namespace {

constexpr int64_t kPlanes = 4 * kLanes;                // that stand side by side
constexpr int64_t kCache = 128 << 10, kLongest = 512;  // bytes, and elements of a row

// How the result is cut into bands of rows, of which each with what it needs stays in a core's own cache; no rows where
// planes are too few, or rows too long.
struct Bands {
  int64_t rows = 0, count = 0;
};
// `bytes_of_x` and `bytes_of_y`: of an element of all operands that are as x is, or as y is, together.
Bands bands_of(const Extents& g, int64_t bytes_of_x, int64_t bytes_of_y, bool is_backward) {
  if (g.inner != 1 || g.outer < kPlanes || g.IW > kLongest || g.OH * g.OW == 0) return {};
  const int64_t all = is_backward ? g.IH : g.OH;
  const auto bytes = [&](int64_t rows) {
    const int64_t others = is_backward ? ceil_div(rows + g.KH - 1, g.SH) : (rows - 1) * g.SH + g.KH;
    const int64_t of_x = is_backward ? rows : others, of_y = is_backward ? others : rows;
    return kPlanes * (std::min(of_x, g.IH) * g.IW * bytes_of_x + std::min(of_y, g.OH) * g.OW * bytes_of_y);
  };
  int64_t rows = 1;
  while (rows < all && bytes(rows + 1) <= kCache) ++rows;
  const int64_t count = ceil_div(all, rows);
  return {ceil_div(all, count), ceil_div(all, ceil_div(all, count))};
}

// The rows of the other operands that rows `r` of the result need.
Range reach(const Plan& g, Range r, bool is_backward) {
  if (is_backward) {
    return {g.windows_of_row[static_cast<size_t>(r.begin)].begin, g.windows_of_row[static_cast<size_t>(r.end - 1)].end};
  }
  return {std::clamp<int64_t>(r.begin * g.SH - g.top, 0, g.IH),
          std::clamp<int64_t>((r.end - 1) * g.SH - g.top + g.KH, 0, g.IH)};
}

// Rows of `from` become columns of `to`.
template <class Bits>
void transpose(const Rows<const Bits>& from, const Rows<Bits>& to) {
  const bool has_tiles = from.count >= kTile<Bits> && to.count >= kTile<Bits>;
  has_tiles ? transpose_tiles<Bits>(from, to, {}, false) : transpose_elements<Bits>(from, to);
}

// An input or output, and its part of a thread's memory.
struct Operand {
  int64_t size, width, plane;  // bytes of an element; elements of a row and of a plane
  bool of_result;
  int64_t at = 0;                    // bytes from the beginning of the memory
  std::vector<int64_t> planes = {};  // where they begin

  // Calls f with an unsigned integer of the size of an element.
  template <class F>
  void dispatch(const F& f) const {
    if (size == 1) return f(uint8_t{});
    size == 2 ? f(uint16_t{}) : f(uint32_t{});
  }
};

class PlanesKernel final : public Kernel {
 public:
  PlanesKernel(std::string name, const Plan& g, const PlanesWork& work, Bands bands, int threads)
      : Kernel(std::move(name)),
        plan_(g),
        walk_(work.walk),
        is_backward_(work.is_backward),
        rows_(work.is_backward ? g.IH : g.OH),
        bands_(bands),
        outer_(g.outer),
        inputs_(work.in.size()) {
    plan_.outer = 1;
    plan_.inner = kPlanes;
    int64_t moved = 0, longest = 0;
    const auto add = [&](const TensorSpec& s, bool like_x) {
      Operand o{static_cast<int64_t>(size_of(s.dtype)), like_x ? g.IW : g.OW, like_x ? g.IH * g.IW : g.OH * g.OW,
                like_x == work.is_backward};
      o.at = bytes_;
      for (int64_t i = 0; i < kPlanes; ++i) o.planes.push_back(i * o.plane);
      const int64_t elements = most_rows(o.of_result) * o.width;
      longest = std::max(longest, elements);
      bytes_ += ceil_div(elements * kPlanes * o.size, int64_t{64}) * 64;
      moved += static_cast<int64_t>(s.bytes());
      operands_.push_back(std::move(o));
    };
    for (size_t i = 0; i < work.in.size(); ++i) add(work.in[i], work.like_x[i]);
    for (size_t i = 0; i < work.out.size(); ++i) add(work.out[i], work.like_x[work.in.size() + i]);
    for (int64_t j = 0; j < longest; ++j) side_.push_back(j * kPlanes);
    units_ = ceil_div(outer_, kPlanes) * bands_.count;
    team_ = static_cast<int>(std::clamp<int64_t>(std::min(units_, moved / kGrainBytes), 1, threads));
    info().workspace_bytes = static_cast<size_t>(team_ * bytes_);
  }

  void run(const Launch& l) const override {
    parallel_team(team_, [&](int t, int count) {
      const Range mine = piece(units_, t, count);
      uint8_t* const memory = static_cast<uint8_t*>(l.workspace) + t * bytes_;
      for (int64_t unit = mine.begin; unit < mine.end; ++unit)
        pool(l, memory, unit / bands_.count, unit % bands_.count);
    });
  }

 private:
  // Rows that a band has of an operand.
  int64_t most_rows(bool of_result) const {
    if (of_result) return bands_.rows;
    int64_t most = 0;
    for (int64_t b = 0; b < bands_.count; ++b) {
      const Range r = reach(plan_, rows_of(b), is_backward_);
      most = std::max(most, r.end - r.begin);
    }
    return most;
  }
  Range rows_of(int64_t band) const { return {band * bands_.rows, std::min(rows_, (band + 1) * bands_.rows)}; }

  void pool(const Launch& l, uint8_t* memory, int64_t group, int64_t band) const {
    const Range rows = rows_of(band), needed = reach(plan_, rows, is_backward_);
    const int64_t first = group * kPlanes, n = std::min(kPlanes, outer_ - first);
    void* moved[4];  // a walk finds its rows from the first of all, which does not exist
    const auto elements_of = [&](const Operand& o) {
      const Range r = o.of_result ? rows : needed;
      return Range{r.begin * o.width, std::max(r.begin, r.end) * o.width};
    };
    for (size_t i = 0; i < operands_.size(); ++i) {
      const Operand& o = operands_[i];
      const Range e = elements_of(o);
      moved[i] = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(memory + o.at) -
                                         static_cast<uintptr_t>(e.begin * kPlanes * o.size));
      if (i >= inputs_) continue;
      o.dispatch([&]<class Bits>(Bits) {
        const Bits* x = static_cast<const Bits*>(l.in[i]) + first * o.plane + e.begin;
        transpose<Bits>({x, o.planes.data(), n},
                        {reinterpret_cast<Bits*>(memory + o.at), side_.data(), e.end - e.begin});
      });
    }
    walk_(plan_, {moved, moved + inputs_, nullptr}, rows.begin, rows.end);
    for (size_t i = inputs_; i < operands_.size(); ++i) {
      const Operand& o = operands_[i];
      const Range e = elements_of(o);
      o.dispatch([&]<class Bits>(Bits) {
        Bits* y = static_cast<Bits*>(l.out[i - inputs_]) + first * o.plane + e.begin;
        transpose<Bits>({reinterpret_cast<const Bits*>(memory + o.at), side_.data(), e.end - e.begin},
                        {y, o.planes.data(), n});
      });
    }
  }

  Plan plan_;
  Walk walk_;
  bool is_backward_;
  int64_t rows_;
  Bands bands_;
  int64_t outer_, units_ = 0, bytes_ = 0;  // planes; groups of them by bands; of a thread's memory
  size_t inputs_;
  int team_ = 1;
  std::vector<Operand> operands_;
  std::vector<int64_t> side_;  // where an element of all planes begins
};

}  // namespace

std::unique_ptr<Kernel> planes_kernel(std::string name, const Plan& g, const PlanesWork& work, int threads) {
  int64_t of_x = 0, of_y = 0;
  size_t i = 0;
  for (const auto* specs : {&work.in, &work.out}) {
    for (const TensorSpec& s : *specs) (work.like_x[i++] ? of_x : of_y) += static_cast<int64_t>(size_of(s.dtype));
  }
  const Bands bands = bands_of(g, of_x, of_y, work.is_backward);
  if (bands.rows == 0) return nullptr;
  return std::make_unique<PlanesKernel>(std::move(name), g, work, bands, threads);
}

}  // namespace plumb::cpu::pool
