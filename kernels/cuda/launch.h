// The host's side of our own kernels: launching them, and a Kernel around the launches.
#pragma once

#include <algorithm>
#include <limits>
#include <type_traits>

#include "../../dispatch/kernel.h"
#include "../../kernels/compute.h"
#include "language.h"

namespace plumb::cuda {

using detail::dispatch_compute;
using detail::dispatch_size;

struct Grid {
  Extent3 blocks, threads;
};

/// Where the launches of a run go.
class Queue {
 public:
  Queue(Runtime& runtime, void* stream, const char* work) : runtime_(runtime), stream_(stream), work_(work) {}
  Runtime& runtime() const { return runtime_; }
  /// Launches a __global__ function on its one argument. A grid without blocks is nothing to do.
  template <auto kFunction, class Args>
  void launch(const Grid& grid, const Args& args) const;

 private:
  Runtime& runtime_;
  void* stream_;
  const char* work_;
};

namespace launching {
template <class Function>
struct ArgumentOf;
template <class Args>
struct ArgumentOf<void (*)(Args)> {
  using Type = Args;
};
template <auto kFunction>
using Argument = typename ArgumentOf<decltype(kFunction)>::Type;

template <auto kFunction>
void call(const void*, const void* args) {
#ifndef __CUDACC__
  kFunction(*static_cast<const Argument<kFunction>*>(args));
#endif
}
/// The text of the compiler around the function's name.
template <auto kFunction>
const char* name() {
  return __PRETTY_FUNCTION__;
}
}  // namespace launching

template <auto kFunction, class Args>
void Queue::launch(const Grid& g, const Args& args) const {
  static_assert(std::is_same_v<Args, launching::Argument<kFunction>>);
  static_assert(std::is_trivially_copyable_v<Args> && sizeof(Args) <= 32764, "what a launch takes from CUDA 12.1 on");
  if (g.blocks.x == 0 || g.blocks.y == 0 || g.blocks.z == 0) return;
  runtime_.launch({launching::name<kFunction>(), work_, reinterpret_cast<const void*>(kFunction), g.blocks, g.threads,
                   &args, sizeof args, &launching::call<kFunction>},
                  stream_);
}

/// As many blocks as `pieces` need, but no more than the device has use for: kernels stride over the grid. What is no
/// GPU (the emulated device) has use for few, so that small tensors, too, go round the loops more than once.
inline Grid grid_of(const Runtime& r, int64_t pieces, unsigned threads) {
  const int64_t of_multiprocessor = r.properties().is_gpu() ? 32 : 2;
  const int64_t most = of_multiprocessor * r.properties().multiprocessors;
  return {{static_cast<unsigned>(std::min(pieces, most))}, {threads}};
}
/// The same for `elements`, a thread each.
inline Grid grid_over(const Runtime& r, int64_t elements, unsigned threads = 256) {
  return grid_of(r, (elements + threads - 1) / threads, threads);
}

/// A kernel of our own: run(queue, launch) makes the launches. `name` is a literal, "plumb:softmax".
template <class Run>
std::unique_ptr<Kernel> own(const char* name, Device d, int launches, Run run) {
  auto kernel = make_kernel(name, [name, run = std::move(run), &runtime = runtime_of(d)](const Launch& l) {
    run(Queue(runtime, l.stream, name), l);
  });
  kernel->info().launches = launches;
  return kernel;
}
/// Offers it as a candidate.
template <class Run>
void offer(Candidates& candidates, const char* algorithm, const char* name, Device d, int launches, const Run& run) {
  candidates.add(algorithm, [=] { return own(name, d, launches, run); });
}

}  // namespace plumb::cuda
