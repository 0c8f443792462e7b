#include "dispatch/random_fill.h"

#include "kernels/cpu/parallel.h"

namespace plumb {
namespace {

class RandomKernel final : public Kernel {
 public:
  RandomKernel(const TensorSpec& y, const RandomParams& p)
      : Kernel("plumb:random"), dtype_(y.dtype), n_(y.numel()), params_(p) {}
  void run(const Launch& l) const override {
    constexpr int64_t kGrain = 4096;  // a number takes as long as some tens of bytes
    cpu::parallel_for(n_, kGrain, 64, [&](int64_t begin, int64_t end) {
      detail::fill_random(l.out[0], dtype_, begin, end, params_.distribution(), params_.seed);
    });
  }

 private:
  DType dtype_;
  int64_t n_;
  RandomParams params_;
};

}  // namespace

void RandomFill::cpu(const Problem<Params>& p, Candidates& candidates) {
  candidates.add("loop", [=] { return std::make_unique<RandomKernel>(p.out[0], p.params); });
}

}  // namespace plumb
