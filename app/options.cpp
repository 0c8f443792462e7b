#include "app/options.h"

#include <fmt/core.h>

#include "core/device.h"
#include "dispatch/kernel_cache.h"
#include "kernels/threads.h"

namespace plumb::app {

Reading nonnegative() {
  return [](const std::string& text) { return nonnegative_number(text), text; };
}

namespace {

Reading one_of(const std::vector<std::string>& names) {
  return [names](const std::string& text) { return check_choice(text, names), text; };
}

}  // namespace

Option add_choice(const CommandLine& line, const std::string& option, std::string& value,
                  const std::vector<std::string>& names, const std::string& about) {
  const Option o = line.add(option, value, about + any_of(names)).read_by(one_of(names));
  return value.empty() ? o : o.with_default();
}

Option add_choices(const CommandLine& line, const std::string& option, std::vector<std::string>& values,
                   const std::vector<std::string>& names, const std::string& about) {
  return line.add(option, values, about + any_of(names)).between_commas().read_by(one_of(names)).with_default();
}

void add_model_option(const CommandLine& line, std::string& model) {
  add_choice(line, "model", model, model_choices(), "").required();
}

Option add_batch_option(const CommandLine& line, int64_t& batch, const char* about) {
  const auto read = [](const std::string& text) { return std::to_string(batch_size(text)); };
  return line.add("--batch", batch, about).read_by(read).with_default();
}

void add_limit_option(const CommandLine& line, int64_t& limit, const char* about) {
  line.add("--limit", limit, about).read_by(whole_from<int64_t>(0)).with_default();
}

void add_algorithm_option(const CommandLine& line, std::string& algorithm) {
  const auto read = [](const std::string& text) { return check_algorithm_name(text), text; };
  line.add("--algorithm", algorithm, "Of the kernels: " + any_of(algorithm_names()) + "; or an engine, cudnn_e38")
      .read_by(read)
      .with_default();
}

void add_workspace_option(const CommandLine& line) {
  constexpr int kMost = std::numeric_limits<int>::max();  // megabytes
  line.add_taken(
          "--workspace", [](int mb) { set_workspace_limit(size_t{1000000} * static_cast<size_t>(mb)); },
          "The most megabytes of workspace that a kernel may ask for [a GPU: an eighth of its memory; cpu: no limit]")
      .read_by(whole_from<int>(0, kMost));
}

void add_device_option(const CommandLine& line, std::string& device, const char* about) {
  const auto read = [](const std::string& text) { return to_string(device_from_string(text)); };
  line.add("--device", device, fmt::format("{}: cpu, cuda or cuda:N", about)).read_by(read).with_default();
}

void add_dtype_option(const CommandLine& line, std::string& dtype) {
  add_choice(line, "--dtype", dtype, precision_names(),
             "Of activations, parameters being f32; tf32 is f32 with products by tensor cores of a GPU: ");
}

void add_threads_option(const CommandLine& line) {
  line.add_taken("--threads", set_threads, "Threads of the kernels [all]").read_by(whole_from<int>(1, most_threads()));
}

}  // namespace plumb::app
