#include "kernels/augment.h"

#include "kernels/cpu/parallel.h"

namespace plumb {
namespace {

template <class T>
std::unique_ptr<Kernel> augment_kernel(const TensorSpec& y) {
  constexpr bool kRounds = !std::is_same_v<T, float>;
  auto kernel = make_kernel("plumb:augment", [y](const Launch& l) {
    const auto* pixels = static_cast<const uint8_t*>(l.in[0]);
    const auto* windows = static_cast<const functors::Window*>(l.in[1]);
    const auto* table = static_cast<const float*>(l.in[2]);
    const int64_t channels = y.shape[1], bytes = channels * y.shape[2] * y.shape[3];
    const T* tables;
    if constexpr (kRounds) {
      auto* const rounded = static_cast<T*>(l.workspace);
      for (int64_t i = 0; i < channels * functors::kPixelValues; ++i) rounded[i] = T(table[i]);
      tables = rounded;
    } else {
      tables = table;
    }
    const auto image = [&](int64_t i) { return pixels + i * bytes; };
    const auto window = [&](int64_t i) { return windows[i]; };
    const int64_t grain = std::max<int64_t>(1, cpu::kGrainBytes / std::max<int64_t>(1, bytes));
    cpu::parallel_for(y.shape[0], grain, 1, [&](int64_t begin, int64_t end) {
      functors::write_images(y, begin, end, image, window, tables, static_cast<T*>(l.in[3]));
    });
  });
  kernel->info().bytes = static_cast<double>(y.bytes());  // bytes written; the gate adds those read
  if (kRounds) kernel->info().workspace_bytes = static_cast<size_t>(y.shape[1] * functors::kPixelValues) * sizeof(T);
  return kernel;
}

}  // namespace

void Augment::cpu(const Problem<Params>& p, Candidates& candidates) {
  const TensorSpec& y = p.in[3];
  if (y.dtype == DType::kF32) candidates.add("loop", [=] { return augment_kernel<float>(y); });
  if (y.dtype == DType::kBf16) candidates.add("loop", [=] { return augment_kernel<Bfloat16>(y); });
}

}  // namespace plumb
