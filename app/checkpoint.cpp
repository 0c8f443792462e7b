#include "app/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <system_error>

#include "models/safetensors.h"

namespace plumb::app {
namespace {

namespace fs = std::filesystem;
using models::in_quotes;
using models::TensorFileReader;
using Texts = std::map<std::string, std::string>;

constexpr const char* kFormat = "plumbline checkpoint";
constexpr const char* kVersion = "1";
constexpr std::string_view kConfig = "config.";

fs::path file_in(const fs::path& folder) { return folder / "checkpoint.safetensors"; }

TensorFileReader open(const fs::path& folder) {
  std::error_code error;
  PLUMB_CHECK(fs::exists(file_in(folder), error), "there is no checkpoint in {}: {} is missing", folder.string(),
              file_in(folder).string());
  return TensorFileReader(file_in(folder));
}

const std::string& entry(const TensorFileReader& reader, const std::string& key) {
  const auto it = reader.metadata().find(key);
  PLUMB_CHECK(it != reader.metadata().end(), "{} is not a checkpoint: its metadata has no {}", reader.file(),
              in_quotes(key));
  return it->second;
}

Checkpoint described(const TensorFileReader& reader) {
  PLUMB_CHECK(entry(reader, "format") == kFormat, "{} is not a checkpoint: its format is {}", reader.file(),
              in_quotes(entry(reader, "format")));
  PLUMB_CHECK(entry(reader, "version") == kVersion, "{} has version {} of the checkpoint format, this program reads {}",
              reader.file(), in_quotes(entry(reader, "version")), kVersion);
  Checkpoint c;
  c.layout = entry(reader, "layout");
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

void check_config(const TensorFileReader& reader, const Checkpoint& c, const Texts& expected) {
  for (const auto& [key, value] : expected) {
    const auto it = c.config.find(key);
    PLUMB_CHECK(it != c.config.end(), "the checkpoint {} does not say of which {} it is", reader.file(), key);
    PLUMB_CHECK(it->second == value, "the checkpoint {} is of {} {}, not {}", reader.file(), key, it->second, value);
  }
}

}  // namespace

void save_checkpoint(const fs::path& folder, std::span<const models::NamedTensor> state, const Checkpoint& c) {
  std::error_code error;
  fs::create_directories(folder, error);
  PLUMB_CHECK(fs::is_directory(folder), "the folder {} for checkpoints cannot be made: {}", folder.string(),
              error.message());
  Texts texts{{"format", kFormat},
              {"version", kVersion},
              {"epochs_done", std::to_string(c.epochs_done)},
              {"layout", c.layout},
              {"choices", nlohmann::json(c.choices).dump()}};
  for (const auto& [key, value] : c.config) texts[std::string(kConfig) + key] = value;
  models::save_safetensors(file_in(folder), state, texts);
}

Checkpoint load_checkpoint(const fs::path& folder, std::span<const models::NamedTensor> state, const Texts& expected) {
  const TensorFileReader reader = open(folder);
  Checkpoint checkpoint = described(reader);
  check_config(reader, checkpoint, expected);
  std::map<std::string_view, Tensor> wanted;
  for (const auto& [name, tensor] : state) wanted[name] = tensor;
  for (const auto& e : reader.entries()) {
    const auto it = wanted.find(e.name);
    PLUMB_CHECK(it != wanted.end(), "the checkpoint {} has tensor {}, which this run lacks", reader.file(),
                in_quotes(e.name));
    PLUMB_CHECK(it->second.spec() == e.spec, "the checkpoint {} has tensor {} as {}, this run as {}", reader.file(),
                in_quotes(e.name), e.spec, it->second.spec());
  }
  for (const auto& [name, tensor] : wanted) {
    const bool found = std::ranges::any_of(reader.entries(), [&](const auto& e) { return e.name == name; });
    PLUMB_CHECK(found, "the checkpoint {} lacks tensor {}", reader.file(), in_quotes(name));
  }
  for (const auto& e : reader.entries()) reader.read(e, wanted[e.name]);
  return checkpoint;
}

Checkpoint peek_checkpoint(const fs::path& folder) { return described(open(folder)); }

}  // namespace plumb::app
