#include "kernels/cast.h"

#include "kernels/cpu/movement/convert.h"
#include "kernels/cpu/movement/reorder.h"
#include "kernels/cpu/nontemporal.h"

namespace plumb {
namespace {

template <class To, class From>
class CastKernel final : public Kernel {
 public:
  explicit CastKernel(int64_t n) : Kernel("plumb:cast"), n_(n) {}
  void run(const Launch& l) const override {
    const auto* x = static_cast<const From*>(l.in[0]);
    const cpu::Source source{x, static_cast<double>(sizeof(From)) / sizeof(To)};
    cpu::parallel_write(static_cast<To*>(l.out[0]), n_, {&source, 1}, [&](int64_t begin, int64_t end, To* to) {
      const From* from = x + begin;
#pragma GCC ivdep
      for (int64_t i = 0; i < end - begin; ++i) to[i] = cpu::convert<To>(from[i]);
    });
  }

 private:
  int64_t n_;
};

}  // namespace

void Cast::cpu(const Problem<NoParams>& p, Candidates& candidates) {
  dispatch_dtype(p.in[0].dtype, [&]<class From>() {
    dispatch_dtype(p.out[0].dtype, [&]<class To>() {
      candidates.add("loop", [n = p.out[0].numel()] { return std::make_unique<CastKernel<To, From>>(n); });
    });
  });
  cpu::offer_reorder(p.in[0], strides_of(p.in[0]), p.out[0], candidates);
}

}  // namespace plumb
