#include "app/options.h"

namespace plumb::app {

CLI::Validator checked(std::function<std::string(const std::string&)> read) {
  const auto why_not = [read = std::move(read)](std::string& text) {
    try {
      text = read(text);
      return std::string();
    } catch (const Error& e) {
      return std::string(e.what());
    }
  };
  return CLI::Validator(why_not, "");
}

CLI::Validator nonnegative() {
  return checked([](const std::string& text) {
    nonnegative_number(text);
    return text;
  });
}

namespace {

CLI::Validator one_of(const std::vector<std::string>& names) {
  return checked([names](const std::string& text) { return check_choice(text, names), text; });
}

}  // namespace

CLI::Option* add_choice(CLI::App& app, const std::string& option, std::string& value,
                        const std::vector<std::string>& names, const std::string& about) {
  auto* o = app.add_option(option, value, about + any_of(names))->check(one_of(names));
  return value.empty() ? o : o->capture_default_str();
}

CLI::Option* add_choices(CLI::App& app, const std::string& option, std::vector<std::string>& values,
                         const std::vector<std::string>& names, const std::string& about) {
  auto* o = app.add_option(option, values, about + any_of(names))->delimiter(',')->allow_extra_args(false);
  return o->check(one_of(names))->capture_default_str();
}

void add_model_option(CLI::App& app, std::string& model) {
  add_choice(app, "model", model, model_choices(), "")->required();
}

CLI::Option* add_batch_option(CLI::App& app, int64_t& batch, const char* about) {
  const auto read = [](const std::string& text) { return std::to_string(batch_size(text)); };
  return app.add_option("--batch", batch, about)->transform(checked(read))->capture_default_str();
}

void add_limit_option(CLI::App& app, int64_t& limit, const char* about) {
  app.add_option("--limit", limit, about)->transform(whole_from<int64_t>(0))->capture_default_str();
}

void add_algorithm_option(CLI::App& app, std::string& algorithm) {
  add_choice(app, "--algorithm", algorithm, algorithm_names(), "Of the kernels: ");
}

void add_dtype_option(CLI::App& app, std::string& dtype) {
  add_choice(app, "--dtype", dtype, {"f32", "bf16"}, "Of activations, parameters being f32: ");
}

void add_threads_option(CLI::App& app) {
  app.add_option_function<int>("--threads", set_threads, "Threads of the kernels [all]")
      ->transform(whole_from<int>(1, most_threads()));
}

}  // namespace plumb::app
