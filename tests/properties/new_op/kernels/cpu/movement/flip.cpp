#include "kernels/flip.h"

#include <algorithm>

#include "kernels/cpu/parallel.h"

namespace plumb {
namespace {

class RowsKernel final : public Kernel {
 public:
  RowsKernel(int64_t rows, int64_t n) : Kernel("plumb:flip"), rows_(rows), n_(n) {}
  void run(const Launch& l) const override {
    const auto* x = static_cast<const float*>(l.in[0]);
    auto* y = static_cast<float*>(l.out[0]);
    cpu::parallel_for(rows_, 1024, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) std::reverse_copy(x + r * n_, x + (r + 1) * n_, y + r * n_);
    });
  }

 private:
  int64_t rows_, n_;
};

}  // namespace

void Flip::cpu(const Problem<Params>& p, Candidates& candidates) {
  const int64_t n = p.in[0].shape[-1], rows = n ? p.in[0].numel() / n : 0;
  if (p.in[0].dtype == DType::kF32) candidates.add("rows", [=] { return std::make_unique<RowsKernel>(rows, n); });
}

}  // namespace plumb
