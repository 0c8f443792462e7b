#include "measure/command/options.h"

#include "core/device.h"
#include "dispatch/kernel_cache.h"
#include "dispatch/policy.h"
#include "kernels/threads.h"

namespace plumb::command {

void add_model_option(const CommandLine& line, std::string& model) {
  add_choice(line, "model", model, model_choices(), {.is_required = true});
}

void add_batch_option(const CommandLine& line, int64_t& batch, const char* about) {
  add_whole<int64_t>(line, "--batch", batch, about, 1, kMostImages);
}

void add_limit_option(const CommandLine& line, int64_t& limit, const char* about) {
  add_whole<int64_t>(line, "--limit", limit, about, 0);
}

void add_kernel_options(const CommandLine& line, KernelChoice& kernels) {
  const auto take = [&kernels](const std::string& text) {
    const KernelSet set = kernels.set;  // keep --kernels, which may come before --algorithm
    kernels = kernel_choice(text);
    kernels.set = set;
  };
  line.add("--algorithm", take,
           {"Of the kernels: " + any_of(algorithm_names()) + "; or an engine, cudnn_e38", to_string(kernels)});
  add_choice(line, "--kernels", kernels.set, kKernelSets,
             {"Whose kernels may run, vendor being oneDNN's, cuDNN's and cuBLASLt's wherever they have the op: "});
}

void add_workspace_option(const CommandLine& line) {
  const auto take = [](const std::string& text) {
    set_workspace_limit(size_t{1000000} * static_cast<size_t>(whole_number<int>(text, 0)));
  };
  line.add("--workspace", take,
           {"The most megabytes of workspace that a kernel may ask for [a GPU: an eighth of its memory; cpu: no limit]",
            "", "INT"});
}

void add_device_option(const CommandLine& line, Device& device, const char* about) {
  line.add("--device", [&device](const std::string& text) { device = device_from_string(text); },
           {std::string(about) + ": cpu, cuda or cuda:N", to_string(device)});
}

void add_dtype_option(const CommandLine& line, training::Precision& precision) {
  add_choice(line, "--dtype", precision, training::kPrecisions,
             {"Of activations, parameters being f32; tf32 is f32 with products by tensor cores of a GPU: "});
}

void add_threads_option(const CommandLine& line) {
  line.add("--threads", [](const std::string& text) { set_threads(whole_number<int>(text, 1, most_threads())); },
           {"Threads of the kernels [all]", "", "INT"});
}

}  // namespace plumb::command
