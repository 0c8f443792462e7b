#include "train/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/file.h"
#include "models/safetensors.h"
#include "models/weights.h"
#include "ops/copy.h"

namespace plumb::training {
namespace {

using detail::in_quotes;
namespace fs = std::filesystem;
using models::TensorFileReader;
using Texts = std::map<std::string, std::string>;

constexpr const char* kFile = "checkpoint.safetensors";
constexpr std::string_view kConfig = "config.";

TensorFileReader open(const fs::path& folder) {
  std::error_code error;
  PLUMB_CHECK(fs::status(checkpoint_file(folder), error).type() != fs::file_type::not_found,
              "there is no checkpoint in {}: {} is missing", folder.string(), checkpoint_file(folder).string());
  return TensorFileReader(checkpoint_file(folder));
}

const std::string& entry(const TensorFileReader& reader, const std::string& key) {
  const auto it = reader.metadata().find(key);
  PLUMB_CHECK(it != reader.metadata().end(), "{} is not a checkpoint: its metadata has no {}", reader.file(),
              in_quotes(key));
  return it->second;
}

// The value with this name.
template <class T, size_t N>
T named(const TensorFileReader& reader, const char* what, const std::string& name, const T (&values)[N]) {
  for (const T& value : values) {
    if (name == to_string(value)) return value;
  }
  fail("{} is not a valid checkpoint: its {} is {}", reader.file(), what, in_quotes(name));
}

Checkpoint described(const TensorFileReader& reader) {
  PLUMB_CHECK(entry(reader, "format") == models::kCheckpointFormat, "{} is not a checkpoint: its format is {}",
              reader.file(), in_quotes(entry(reader, "format")));
  models::check_checkpoint_version(reader);
  Checkpoint c;
  c.layout = named(reader, "layout", entry(reader, "layout"), kPublicLayouts);
  const std::string& epochs = entry(reader, "epochs_done");
  const auto [end, error] = std::from_chars(epochs.data(), epochs.data() + epochs.size(), c.epochs_done);
  PLUMB_CHECK(error == std::errc() && end == epochs.data() + epochs.size() && c.epochs_done >= 0,
              "{} is not a valid checkpoint: {} is no number of epochs", reader.file(), in_quotes(epochs));
  try {
    nlohmann::json::parse(entry(reader, "choices")).get_to(c.choices);
  } catch (const nlohmann::json::exception&) {
    fail("{} is not a valid checkpoint: its choices are not an object of texts", reader.file());
  }
  for (const auto& [key, value] : reader.metadata()) {
    if (key.starts_with(kConfig)) c.config[key.substr(kConfig.size())] = value;
  }
  return c;
}

std::string json_of(const TunedAlgorithms& choices) {
  try {
    return nlohmann::json(choices).dump();
  } catch (const nlohmann::json::exception&) {
    fail("save_checkpoint: a network or an algorithm has a name that is not UTF-8; name it by UTF-8");
  }
}

}  // namespace

void save_checkpoint(const fs::path& folder, std::span<const models::NamedTensor> state, const Checkpoint& c) {
  std::error_code error;
  fs::create_directories(folder, error);
  std::error_code hidden;  // of looking, which may forget why it was not made
  PLUMB_CHECK(fs::is_directory(folder, hidden), "the folder {} for checkpoints cannot be made: {}", folder.string(),
              error.message());
  Texts texts{{"format", std::string(models::kCheckpointFormat)},
              {"version", std::string(models::kCheckpointVersion)},
              {"epochs_done", std::to_string(c.epochs_done)},
              {"layout", to_string(c.layout)},
              {"choices", json_of(c.choices)}};
  for (const auto& [key, value] : c.config) texts[std::string(kConfig) + key] = value;
  models::save_safetensors(checkpoint_file(folder), state, texts);
}

fs::path checkpoint_file(const fs::path& folder) { return folder / kFile; }

fs::path weights_file(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(checkpoint_file(path), error);
  const bool is_hidden = status.type() == fs::file_type::none && fs::is_directory(path, error);  // opening it says why
  return fs::exists(status) || is_hidden ? checkpoint_file(path) : path;
}

std::optional<Convention> convention_of(const fs::path& weights) {
  const TensorFileReader reader(weights);
  const auto& texts = reader.metadata();
  const auto format = texts.find("format"), name = texts.find(std::string(kConfig) + "convention");
  if (format == texts.end() || format->second != models::kCheckpointFormat || name == texts.end()) return {};
  return named(reader, "convention", name->second, kConventions);
}

Checkpoint load_checkpoint(const fs::path& folder, std::span<const models::NamedTensor> state) {
  const TensorFileReader reader = open(folder);
  const Checkpoint checkpoint = described(reader);
  std::map<std::string_view, Tensor> wanted;
  for (const auto& [name, tensor] : state)
    PLUMB_CHECK(wanted.emplace(name, tensor).second, "load_checkpoint: two tensors are called {}", in_quotes(name));
  for (const auto& e : reader.entries()) {
    const auto it = wanted.find(e.name);
    PLUMB_CHECK(it != wanted.end(), "the checkpoint {} has tensor {}, which this run lacks", reader.file(),
                in_quotes(e.name));
    PLUMB_CHECK(it->second.spec() == e.spec, "the checkpoint {} has tensor {} as {}, this run as {}", reader.file(),
                in_quotes(e.name), e.spec, it->second.spec());
  }
  for (const auto& each : wanted) {
    const bool found = std::ranges::any_of(reader.entries(), [&](const auto& e) { return e.name == each.first; });
    PLUMB_CHECK(found, "the checkpoint {} lacks tensor {}", reader.file(), in_quotes(each.first));
  }
  // All are read before one is written, so that a failing disk leaves everything as it was.
  TensorList fresh;
  for (const auto& e : reader.entries()) {
    fresh.push_back(Tensor::empty(e.spec, MemoryClass::kParameter));
    reader.read(e, fresh.back());
  }
  for (size_t i = 0; i < fresh.size(); ++i) copy_into(wanted[reader.entries()[i].name], fresh[i]);
  return checkpoint;
}

Checkpoint peek_checkpoint(const fs::path& folder) { return described(open(folder)); }

}  // namespace plumb::training
