#include "kernels/fill.h"

#include <algorithm>

#include "kernels/cpu/movement/convert.h"
#include "kernels/cpu/parallel.h"

namespace plumb {
namespace {

template <class T>
class FillKernel final : public Kernel {
 public:
  FillKernel(T value, int64_t n) : Kernel("plumb:fill"), value_(value), n_(n) {}
  void run(const Launch& l) const override {
    cpu::parallel_for(n_, cpu::kGrainBytes / static_cast<int64_t>(sizeof(T)), 64, [&](int64_t begin, int64_t end) {
      std::fill(static_cast<T*>(l.out[0]) + begin, static_cast<T*>(l.out[0]) + end, value_);
    });
  }

 private:
  T value_;
  int64_t n_;
};

}  // namespace

void Fill::cpu(const Problem<Params>& p, Candidates& candidates) {
  dispatch_dtype(p.out[0].dtype, [&]<class T>() {
    const auto value = cpu::convert<T>(static_cast<double>(p.params.value));
    candidates.add("loop", [=, n = p.out[0].numel()] { return std::make_unique<FillKernel<T>>(value, n); });
  });
}

}  // namespace plumb
