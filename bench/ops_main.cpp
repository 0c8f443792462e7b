// plumb_bench_ops: every op in every direction, layout, dtype and algorithm, beside what oneDNN alone and a plain copy
// take.
#include <array>
#include <cstdio>

#include "bench/flags.h"
#include "bench/reporter.h"
#include "bench/row.h"
#include "core/context.h"
#include "dispatch/machine.h"
#include "dispatch/policy.h"
#include "kernels/threads.h"
#include "measure/command/command_line.h"
#include "measure/command/options.h"
#include "measure/command/report.h"

namespace plumb::bench {
namespace {

struct Options {
  std::vector<std::string> shapes, dtypes{"f32", "bf16"};
  std::vector<Layout> layouts{Layout::kNhwc, Layout::kNchw, Layout::kChwn};
  Device device;
  int64_t batch = 0;
};

void add_options(const command::CommandLine& line, Options& o) {
  line.add_all("--shapes", o.shapes,
               {"Files of lines like conv2d NAME 2x3x8x8 4x3x3x3 padding=1, instead of the shapes that are built in"});
  command::add_batch_option(line, o.batch, "Images at once, instead of what the shapes say");
  command::add_choices(line, "--layouts", o.layouts, kPublicLayouts, {"Some, between commas, of "});
  command::add_choices(line, "--dtypes", o.dtypes, std::array{"f32", "tf32", "bf16", "f64"},
                       {"Some, between commas, of "});
  command::add_device_option(line, o.device, "Where the ops run");
  command::add_threads_option(line);
  line.footer(std::string(kAboutFlags) +
              "\nRows are OP/DIRECTION/DEVICE/LAYOUT/DTYPE/ALGORITHM/SHAPE. Algorithms: measured; vendor (measured "
              "among the vendor's kernels); the "
              "library's by name; eager (the public op); apart (an op for each part of a fused one); raw_same and "
              "raw_best (oneDNN, cuDNN or cuBLASLt alone); "
              "copy_floor. On cuda, times are those between two events.\n"
              "Exit status: 1 if rows failed, 3 if a row passed the roof of the machine, which then is wrong.");
  line.allow_others();
}

Axes axes_of(const Options& o) {
  Axes axes;
  axes.layouts = o.layouts;
  for (const auto& name : o.dtypes) {
    if (name != "tf32") axes.dtypes.push_back(dtype_from_string(name));
  }
  if (o.shapes.empty()) axes.problems.read(builtin_problems(), "the built-in problems", o.batch);
  for (const auto& file : o.shapes) axes.problems.read_file(file, o.batch);
  return axes;
}

// Those of f32 again, on tensor cores.
void add_tf32_rows(Axes axes) {
  axes.dtypes = {DType::kF32};
  Policy policy = detail::ctx.policy;
  policy.math = MathMode::kTf32;
  const PolicyScope tf32(policy);
  RowSource::add_all(axes);
}

void add_context(Device device) {
  benchmark::AddCustomContext("plumbline", version());
  benchmark::AddCustomContext("processor", cpu_model());
  benchmark::AddCustomContext("isa", cpu_isa());
  benchmark::AddCustomContext("plumb_threads", std::to_string(threads()));
  benchmark::AddCustomContext("device", to_string(device));
  std::vector<std::string> libraries = library_versions();
  if (!device.is_cpu()) {
    benchmark::AddCustomContext("device_name", runtime_of(device).properties().name);
    for (std::string& library : device_library_versions(device)) libraries.push_back(std::move(library));
  }
  for (const std::string& library : libraries) {
    const size_t space = library.rfind(' ');
    benchmark::AddCustomContext("library_" + library.substr(0, space), library.substr(space + 1));
  }
}

int run(int argc, char** argv) {
  const command::CommandLine line("Benchmarks of single ops", "plumb_bench_ops");
  Options o;
  add_options(line, o);
  if (!line.parse(argc, argv)) return 0;
  const std::vector<std::string> flags = line.others();
  std::vector<command::NamedFile> shapes;
  for (const std::string& file : o.shapes) shapes.push_back({"--shapes", file});
  check_flags(flags, shapes);
  initialize(argv[0], flags);

  const Device device = o.device;
  for (const std::string& dtype : o.dtypes) {
    PLUMB_CHECK(dtype != "tf32" || command::has_tensor_cores(device),
                "--dtypes {}: {} has no tensor cores; leave it out", dtype, device);
  }
  const DeviceScope there(device);
  const Axes axes = axes_of(o);
  if (!axes.dtypes.empty()) RowSource::add_all(axes);
  if (axes.dtypes.size() < o.dtypes.size()) add_tf32_rows(axes);
  const std::vector<std::string> selected = register_rows(benchmark::GetBenchmarkFilter());
  check_selected(selected, benchmark::GetBenchmarkFilter());
  if (const std::string list = flag(flags, "benchmark_list_tests", "false"); list != "false" && list != "0") {
    for (const std::string& path : selected) std::puts(path.c_str());
    return 0;
  }
  add_context(device);
  benchmark::SetBenchmarkFilter(
      ".");  // those that are registered were selected by their paths, which are not its names
  benchmark::JSONReporter json;
  RoofReporter display(benchmark::CreateDefaultDisplayReporter(),
                       flag(flags, "benchmark_format", "console") != "console");
  RoofReporter file(&json, true);
  const std::string out = flag(flags, "benchmark_out", "");
  benchmark::RunSpecifiedBenchmarks(&display, out.empty() ? nullptr : &file);
  if (!out.empty()) file.check_written(out);
  benchmark::Shutdown();
  return judge();
}

}  // namespace
}  // namespace plumb::bench

int main(int argc, char** argv) {
  return plumb::command::run_program("plumb_bench_ops", [&] { return plumb::bench::run(argc, argv); });
}
