// plumb info: the machine, or a network's layer table.
#include <fmt/core.h>

#include <cctype>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "app/command.h"
#include "core/runtime.h"
#include "dispatch/machine.h"
#include "kernels/threads.h"
#include "measure/command/options.h"
#include "measure/command/report.h"
#include "measure/device_roofs.h"
#include "measure/roofs.h"
#include "models/network.h"

namespace plumb::app {
namespace {

using Json = nlohmann::ordered_json;

std::string with_commas(int64_t n) {
  std::string digits = std::to_string(n);
  for (auto i = static_cast<std::ptrdiff_t>(digits.size()) - 3; i > 0; i -= 3)
    digits.insert(static_cast<size_t>(i), ",");
  return digits;
}

std::string shape_text(const Shape& s) {
  std::string text = "[-1";
  for (int i = 1; i < s.rank(); ++i) text += ", " + std::to_string(s[i]);
  return text + "]";
}

Json print_network(const std::string& name) {
  const auto network = models::make_network(name);
  Json layers = Json::array();
  fmt::print("{:>28}{:>26}{:>16}\n{}\n", "Layer (type)", "Output Shape", "Param #", std::string(70, '='));
  int64_t number = 0, listed = 0;
  for (const auto& row : network->table()) {
    const std::string label = fmt::format("{}-{}", row.type, ++number);
    fmt::print("{:>28}{:>26}{:>16}\n", label, shape_text(row.output), with_commas(row.parameters));
    std::vector<int64_t> extents(row.output.begin() + 1, row.output.end());
    layers.push_back({{"name", label}, {"type", row.type}, {"output", extents}, {"parameters", row.parameters}});
    listed += row.parameters;
  }
  PLUMB_CHECK(listed == network->parameter_count(), "info: the layers of {} have {} parameters, the network has {}",
              name, listed, network->parameter_count());
  fmt::print("{}\nTotal params: {}\n", std::string(70, '='), with_commas(network->parameter_count()));
  return {{"model", network->name()}, {"layers", layers}, {"parameters", network->parameter_count()}};
}

// What OpenMP's threads do between two loops: on a busy machine, threads that spin take the time of those that compute.
const char* waiting_text(std::string policy) {
  for (char& c : policy) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (policy == "passive") return "OMP_WAIT_POLICY=passive: threads sleep";
  if (policy == "active") return "OMP_WAIT_POLICY=active: threads spin";
  return "active by default: threads spin for a while; OMP_WAIT_POLICY=passive is better on a busy machine";
}

Json print_machine() {
  const measure::Roofs roofs = measure::measure_roofs();
  const char* set = std::getenv("OMP_WAIT_POLICY");
  const std::string policy = set ? set : "";
  fmt::print("device      cpu\nprocessor   {}\nisa         {}\nthreads     {}\n", cpu_model(), cpu_isa(), threads());
  fmt::print("waiting     {}\n", waiting_text(policy));
  for (const auto& v : library_versions()) fmt::print("library     {}\n", v);
  fmt::print("roof        {:.0f} GFLOP/s f32 (multiply-adds {:.0f}, oneDNN matmul {:.0f})\n", roofs.gflops(),
             roofs.fma_gflops, roofs.matmul_gflops);
  fmt::print("roof        {:.0f} GFLOP/s bf16 (multiply-adds {:.0f}, oneDNN matmul {:.0f})\n",
             roofs.gflops(DType::kBf16), roofs.fma_bf16_gflops, roofs.matmul_bf16_gflops);
  fmt::print("copy        {:.1f} GB/s, read and written\n", roofs.copy_gbytes);
  Json j = environment_json();
  j["omp_wait_policy"] = policy;
  j["roofs"] = {{"gflops", roofs.gflops()},
                {"fma_gflops", roofs.fma_gflops},
                {"matmul_gflops", roofs.matmul_gflops},
                {"bf16_gflops", roofs.gflops(DType::kBf16)},
                {"fma_bf16_gflops", roofs.fma_bf16_gflops},
                {"matmul_bf16_gflops", roofs.matmul_bf16_gflops},
                {"copy_gbytes_per_second", roofs.copy_gbytes}};
  return j;
}

// A device beside the host, by what it says of itself and what it reaches.
Json print_device(Device d) {
  const DeviceProperties& p = runtime_of(d).properties();
  const double gib = static_cast<double>(p.memory_bytes) / 0x1p30;
  fmt::print("device      {}\nname        {}\ncapability  {}.{}\n", to_string(d), p.name, p.capability / 10,
             p.capability % 10);
  fmt::print("processors  {}\nmemory      {:.1f} GiB\n", p.multiprocessors, gib);
  const measure::DeviceRoofs roofs = measure::measure_roofs(d);
  Json rates;
  const auto rate = [&](const char* dtype, double flops) {
    if (flops > 0) fmt::print("roof        {:.4g} GFLOP/s {} (the best of a few products)\n", flops / 1e9, dtype);
    rates[fmt::format("{}_gflops", dtype)] = flops / 1e9;
  };
  rate("f32", roofs.f32);
  rate("tf32", roofs.tf32);
  rate("bf16", roofs.bf16);
  rate("f64", roofs.f64);
  fmt::print("copy        {:.4g} GB/s, read and written\n", roofs.bytes / 1e9);
  rates["copy_gbytes_per_second"] = roofs.bytes / 1e9;
  Json j = environment_json(d);
  j["roofs"] = rates;
  j["capability"] = p.capability;
  j["multiprocessors"] = p.multiprocessors;
  j["memory_bytes"] = p.memory_bytes;
  return j;
}

}  // namespace

void add_info(const CommandLine& plumb) {
  struct Config {
    std::string model, json;
    Device device;
  };
  const CommandLine cmd =
      plumb.subcommand("info", "Show the machine and its measured roofs, or a network's layer table");
  auto c = std::make_shared<Config>();
  add_choice(cmd, "--model", c->model, model_choices(), {"The network whose layers to list: "});
  add_device_option(cmd, c->device, "Which to show");
  add_threads_option(cmd);
  cmd.add("--json", c->json, {"Write the same to this file"});
  cmd.calls([c, cmd] {
    PLUMB_CHECK(c->model.empty() || !cmd.has("--device"),
                "--model lists layers, which are the same on every device; leave out --device");
    check_outputs({{"--json", c->json}});
    const Device d = c->device;
    const Json j = !c->model.empty() ? print_network(c->model) : d.is_cpu() ? print_machine() : print_device(d);
    if (!c->json.empty()) write_json(c->json, j);
  });
}

}  // namespace plumb::app
