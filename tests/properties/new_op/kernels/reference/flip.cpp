#include "kernels/flip.h"

#include <algorithm>

namespace plumb {
namespace {

template <class T>
class ReferenceKernel final : public Kernel {
 public:
  explicit ReferenceKernel(const Shape& x) : Kernel("reference:flip"), x_(x) {}
  void run(const Launch& l) const override {
    const auto* x = static_cast<const T*>(l.in[0]);
    for (int64_t i = 0; i < x_.numel(); ++i) {
      const int64_t n = x_[-1];
      static_cast<T*>(l.out[0])[i] = x[i / n * n + n - 1 - i % n];
    }
  }

 private:
  Shape x_;
};

}  // namespace

void Flip::reference(const Problem<Params>& p, Candidates& candidates) {
  dispatch_dtype(p.in[0].dtype, [&]<class T>() {
    candidates.add("reference", [x = p.in[0].shape] { return std::make_unique<ReferenceKernel<T>>(x); });
  });
}

}  // namespace plumb
