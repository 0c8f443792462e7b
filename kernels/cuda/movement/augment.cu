#include "kernels/augment.h"

#include "kernels/cuda/divide.h"
#include "kernels/cuda/element.h"
#include "kernels/cuda/launch.h"

namespace plumb {
namespace {

template <class T>
struct AugmentArgs {
  const uint8_t* pixels;
  const functors::Window* windows;
  const float* table;
  T* y;
  int64_t n;
  cuda::Divisor extent[4];  // of the dimensions of memory, the outermost first
  int place[4];             // of n, c, h and w among these
  int64_t channels, height, width;

  __device__ T at(int64_t i) const {
    int64_t fourth = i, third = extent[3].divide(fourth), second = extent[2].divide(third);
    const int64_t first = extent[1].divide(second);
    // What an array would do that lies in memory.
    const auto of = [&](int d) { return d < 2 ? (d == 0 ? first : second) : d == 2 ? third : fourth; };
    const int64_t image = of(place[0]), channel = of(place[1]), row = of(place[2]), column = of(place[3]);
    const functors::Window& window = windows[image];
    const int64_t h = row + window.dy, w = (window.flip ? width - 1 - column : column) + window.dx;
    const bool is_inside = h >= 0 && h < height && w >= 0 && w < width;
    int64_t pixel = 0;
    if (is_inside) pixel = cuda::get(pixels + ((image * channels + channel) * height + h) * width + w);
    return cuda::rounded<T>(table[channel * functors::kPixelValues + pixel]);
  }
};

template <class T>
__global__ void __launch_bounds__(256, cuda::kFewBlocks) augment_kernel(const AugmentArgs<T> a) {
  cuda::for_dense<cuda::Vector<T>::kSize>(a.n, [&]<int kEach>(int64_t i) {
    cuda::Piece<T, kEach> y;
    for (int j = 0; j < kEach; ++j) y.of[j] = a.at(i + j);
    cuda::store_piece(a.y + i, y);
  });
}

template <class T>
void offer(const Problem<NoParams>& p, Candidates& candidates) {
  candidates.add("loop", [y = p.in[3], device = p.device] {
    AugmentArgs<T> args{};
    args.n = y.numel();
    const DimOrder order = memory_order(y.layout, y.rank());
    for (int d = 0; d < 4; ++d) {
      args.place[order[d]] = d;
      args.extent[d] = cuda::Divisor(std::max<int64_t>(1, y.shape[order[d]]));
    }
    args.channels = y.shape[1], args.height = y.shape[2], args.width = y.shape[3];
    auto kernel = cuda::own("plumb:augment", device, 1, [=](const cuda::Queue& q, const Launch& l) {
      AugmentArgs<T> now = args;
      now.pixels = static_cast<const uint8_t*>(l.in[0]);
      now.windows = static_cast<const functors::Window*>(l.in[1]);
      now.table = static_cast<const float*>(l.in[2]);
      now.y = static_cast<T*>(l.in[3]);
      q.launch<augment_kernel<T>>(cuda::grid_over(q.runtime(), now.n / cuda::Vector<T>::kSize + 1), now);
    });
    kernel->info().bytes += static_cast<double>(y.bytes());  // of what is written; the gate adds what is read
    return kernel;
  });
}

}  // namespace

void Augment::cuda(const Problem<Params>& p, Candidates& candidates) {
  if (p.in[3].dtype == DType::kF32) offer<float>(p, candidates);
  if (p.in[3].dtype == DType::kBf16) offer<Bfloat16>(p, candidates);
}

}  // namespace plumb
