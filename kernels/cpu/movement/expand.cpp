#include "kernels/cpu/element.h"
#include "kernels/cpu/nontemporal.h"
#include "kernels/cpu/strided.h"
#include "kernels/reduce.h"

namespace plumb::cpu {
namespace {

template <class T>
std::unique_ptr<Kernel> expand_kernel(const StridedLoop<1>& loop) {
  return make_kernel("plumb:expand", [loop](const Launch& l) {
    const int64_t width = loop.extent[0], step = loop.stride[0][0];
    const T* const x = static_cast<const T*>(l.in[0]);
    T* const y = static_cast<T*>(l.out[0]);
    const auto write = [step](const T* from, int64_t n, T* to) {
      if (step == 0) {
        std::fill_n(to, n, *from);
      } else {
        for (int64_t i = 0; i < n; ++i) to[i] = from[i * step];
      }
    };
    if (loop.rank == 1) {
      return parallel_write(y, width,
                            [&](int64_t begin, int64_t end, T* to) { write(x + begin * step, end - begin, to); });
    }
    const int64_t grain =
        std::max<int64_t>(1, kGrainBytes / static_cast<int64_t>(sizeof(T)) / std::max<int64_t>(width, 1));
    parallel_for(loop.rows(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        write(x + loop.row_offsets(row)[0], width, y + row * width);
      }
    });
  });
}

}  // namespace
}  // namespace plumb::cpu

namespace plumb {

void Expand::cpu(const Problem<NoParams>& p, Candidates& candidates) {
  const auto loop = cpu::strided_loop<1>(p.out[0], {cpu::broadcast_strides(p.in[0], p.out[0].shape)});
  dispatch_dtype(p.out[0].dtype,
                 [&]<class T>() { candidates.add("loop", [=] { return cpu::expand_kernel<T>(loop); }); });
}

}  // namespace plumb
