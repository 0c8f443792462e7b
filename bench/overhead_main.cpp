// plumb_bench_overhead: what a call costs on the host, on tensors so small that there is nothing else: eager, with the
// tape, captured. compare/overhead/libtorch_overhead.cpp has the same rows for libtorch.
#include <benchmark/benchmark.h>

#include "bench/flags.h"
#include "core/context.h"
#include "core/stopwatch.h"
#include "dispatch/machine.h"
#include "graph/program.h"
#include "kernels/threads.h"
#include "measure/command/command_line.h"
#include "ops/conv2d.h"
#include "ops/elementwise.h"
#include "ops/grad.h"
#include "ops/linear.h"
#include "ops/random.h"

namespace plumb::bench {
namespace {

constexpr int kCapturedOps = 100;

// The rows that there are.
std::vector<std::string> paths;

// A row whose iteration is `ops` calls; the counter says what one of them takes.
template <class F>
void add_row(const std::string& path, int ops, F f) {
  paths.push_back(path);
  benchmark::RegisterBenchmark(path.c_str(), [ops, f](benchmark::State& state) mutable {
    for (int i = 0; i < 100; ++i) f();
    const detail::Stopwatch watch;
    for (auto _ : state) f();
    state.counters["ns_per_op"] = 1e9 * watch.seconds() / static_cast<double>(state.iterations()) / ops;
  });
}

// The three ways to call an op on x: eager without recording, with the tape (x needs a gradient), and captured in a
// row.
template <class Op>
void add_op(const std::string& op, const std::string& problem, const Tensor& x, Op f) {
  const std::string prefix = op + "/forward/cpu/nchw/f32/";
  add_row(prefix + "eager/" + problem, 1, [=] {
    const NoGrad no_grad;
    benchmark::DoNotOptimize(f(x));
  });
  Tensor needs = x.detached();
  needs.require_grad();
  add_row(prefix + "tape/" + problem, 1, [=] { benchmark::DoNotOptimize(f(needs)); });
  auto program = std::make_shared<Program>(capture([&] {
    Tensor y = x;
    for (int i = 0; i < kCapturedOps; ++i) y = f(y);
    return TensorList{y};
  }));
  add_row(prefix + "captured/" + problem, kCapturedOps, [program] { program->run(); });
}

Tensor small(const Shape& s, uint64_t seed) { return uniform(TensorSpec(s), -0.1, 0.1, seed); }

// A long step, run and captured: what a capture costs, which is done once, beside the work of one step on the host.
void add_long_step() {
  constexpr int kUses = 4000;
  Tensor w = small(Shape{1}, 8);
  w.require_grad();
  const auto step = [w] {
    Tensor y = w;
    for (int i = 0; i < kUses; ++i) y = y * w;
    return Tensor(grad(y, {w})[0]);
  };
  const std::string problem = "/1x" + std::to_string(kUses);
  add_row("mul/gradient/cpu/nchw/f32/tape" + problem, kUses, [=] { benchmark::DoNotOptimize(step()); });
  add_row("mul/gradient/cpu/nchw/f32/capturing" + problem, kUses, [=] { benchmark::DoNotOptimize(capture(step)); });
}

void add_rows() {
  const Tensor a = small(Shape{1}, 1), b = small(Shape{1}, 2);
  add_op("add", "1", a, [b](const Tensor& x) { return add(x, b); });

  Tensor ga = a.detached(), gb = b.detached();
  ga.require_grad();
  gb.require_grad();
  add_row("mul/gradient/cpu/nchw/f32/tape/1", 1, [ga, gb] { benchmark::DoNotOptimize(grad(mul(ga, gb), {ga, gb})); });

  add_long_step();

  const Tensor image = small(Shape{1, 16, 8, 8}, 3), filter = small(Shape{16, 16, 3, 3}, 4);
  Conv2dParams same;
  for (int32_t& p : same.padding) p = 1;
  add_op("conv2d", "1x16x8x8", image, [=](const Tensor& x) { return conv2d(x, filter, same); });

  const Tensor rows = small(Shape{8, 64}, 5), weight = small(Shape{64, 64}, 6), bias = small(Shape{64}, 7);
  add_op("linear", "8x64x64", rows, [=](const Tensor& x) { return linear(x, weight, bias); });
}

// Says of a file that it could not be written.
class FileReporter final : public benchmark::JSONReporter {
 public:
  void Finalize() override {
    JSONReporter::Finalize();
    error_ = error_of_flush(GetOutputStream());
  }
  void check_written(const std::string& file) const { check_flushed(file, error_); }

 private:
  int error_ = 0;
};

int run(int argc, char** argv) {
  const command::CommandLine line("What a call costs on the host", "plumb_bench_overhead");
  line.footer(kAboutFlags);
  line.allow_others();
  if (!line.parse(argc, argv)) return 0;
  check_flags(line.others());
  initialize(argv[0], line.others());
  const Filter filter(benchmark::GetBenchmarkFilter());
  detail::ctx.policy.search = Search::kMeasured;
  add_rows();
  std::erase_if(paths, [&](const std::string& path) { return !filter.selects(path); });
  check_selected(paths, benchmark::GetBenchmarkFilter());
  benchmark::AddCustomContext("processor", cpu_model());
  benchmark::AddCustomContext("plumb_threads", std::to_string(threads()));
  FileReporter file;
  const std::string out = flag(line.others(), "benchmark_out", "");
  benchmark::RunSpecifiedBenchmarks(nullptr, out.empty() ? nullptr : &file);
  if (!out.empty()) file.check_written(out);
  benchmark::Shutdown();
  return 0;
}

}  // namespace
}  // namespace plumb::bench

int main(int argc, char** argv) {
  return plumb::command::run_program("plumb_bench_overhead", [&] { return plumb::bench::run(argc, argv); });
}
