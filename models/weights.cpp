#include "models/weights.h"

#include <algorithm>

#include "models/safetensors.h"
#include "ops/convert.h"
#include "ops/copy.h"

namespace plumb::models {

using detail::in_quotes;
namespace {

using Entry = TensorFileReader::Entry;

constexpr std::string_view kDataParallel = "module.", kBatchCounter = "num_batches_tracked";

std::vector<NamedTensor> tensors_of(const Network& network) {
  std::vector<NamedTensor> all = network.parameters();
  all.insert(all.end(), network.buffers().begin(), network.buffers().end());
  return all;
}

// A checkpoint holds the state of a whole run; the network is what has this prefix.
std::string_view wanted_prefix(const TensorFileReader& reader, const Network& network) {
  const auto& texts = reader.metadata();
  const auto format = texts.find("format"), model = texts.find("config.model");
  if (format == texts.end() || format->second != kCheckpointFormat) return {};
  check_checkpoint_version(reader);
  PLUMB_CHECK(model == texts.end() || model->second == network.name(), "{} is a checkpoint of {}, not of {}",
              reader.file(), in_quotes(model->second), network.name());
  return kCheckpointModel;
}

// The tensors of a file by their names, without what PyTorch has put before all of them and beside them, unless a
// tensor that is wanted has such a name itself.
std::map<std::string, const Entry*> by_name(const TensorFileReader& reader, std::span<const NamedTensor> wanted,
                                            std::string_view prefix) {
  const auto is_wrapped = [](const auto& t) { return t.name.starts_with(kDataParallel); };
  const auto is_there = [&](const NamedTensor& t) {
    return std::ranges::any_of(reader.entries(), [&](const Entry& e) { return e.name == t.name; });
  };
  if (std::ranges::all_of(reader.entries(), is_wrapped) && !std::ranges::all_of(wanted, is_there)) {
    prefix = kDataParallel;
  }
  std::map<std::string, const Entry*> entries;
  for (const auto& e : reader.entries()) {
    if (!e.name.starts_with(prefix)) continue;
    const std::string name = e.name.substr(prefix.size());
    const bool is_wanted = std::ranges::any_of(wanted, [&](const NamedTensor& t) { return t.name == name; });
    if (is_wanted || !name.ends_with(kBatchCounter)) entries[name] = &e;
  }
  return entries;
}

std::string first_few(const std::vector<std::string>& names) {
  constexpr size_t kFew = 3;
  std::string text;
  for (size_t i = 0; i < names.size() && i < kFew; ++i) text += (i ? ", " : "") + in_quotes(names[i]);
  return names.size() > kFew ? message("{} and {} more", text, names.size() - kFew) : text;
}

void check_names(const TensorFileReader& reader, const std::string& whose, std::span<const NamedTensor> wanted,
                 const std::map<std::string, const Entry*>& found) {
  std::vector<std::string> missing, unexpected;
  for (const NamedTensor& t : wanted) {
    if (!found.contains(t.name)) missing.push_back(t.name);
  }
  for (const auto& [name, entry] : found) {
    if (std::ranges::none_of(wanted, [&](const NamedTensor& t) { return t.name == name; })) unexpected.push_back(name);
  }
  if (missing.empty() && unexpected.empty()) return;
  std::string difference;
  if (!missing.empty()) difference = "lacks " + first_few(missing);
  if (!unexpected.empty()) {
    difference += (missing.empty() ? "has " : ", and has ") + first_few(unexpected) + ", which the network lacks";
  }
  fail("{} does not hold the weights of {}: it {}", reader.file(), whose, difference);
}

// The tensors of a file into those of the list with the same names. `whose` are they, for messages.
void fill(std::span<const NamedTensor> wanted, const std::string& whose, const TensorFileReader& reader,
          std::string_view prefix) {
  const auto found = by_name(reader, wanted, prefix);
  check_names(reader, whose, wanted, found);
  for (const NamedTensor& t : wanted) {
    const TensorSpec& spec = found.at(t.name)->spec;
    PLUMB_CHECK(t.tensor && t.tensor.layout() == Layout::kNchw && is_floating(t.tensor.dtype()),
                "load_weights: tensor {} is {}; it must be row-major and of a floating dtype", in_quotes(t.name),
                t.tensor ? to_string(t.tensor.spec()) : "empty");
    PLUMB_CHECK(spec.shape == t.tensor.shape(), "{}: tensor {} has shape {}, in {} it has {}", reader.file(),
                in_quotes(t.name), spec.shape, whose, t.tensor.shape());
    PLUMB_CHECK(is_floating(spec.dtype), "{}: tensor {} has dtype {}; weights are f32, f64, f16 or bf16", reader.file(),
                in_quotes(t.name), spec.dtype);
  }
  // All are read before one is written, so that a failing disk leaves everything as it was.
  std::vector<Tensor> fresh;
  for (const NamedTensor& t : wanted) {
    const Entry& entry = *found.at(t.name);
    const Tensor read = Tensor::empty(entry.spec, MemoryClass::kParameter);
    reader.read(entry, read);
    fresh.push_back(to(read, t.tensor.dtype()));
  }
  for (size_t i = 0; i < wanted.size(); ++i) copy_into(wanted[i].tensor, fresh[i]);
}

}  // namespace

void check_checkpoint_version(const TensorFileReader& checkpoint) {
  const auto version = checkpoint.metadata().find("version");
  const std::string found = version == checkpoint.metadata().end() ? "" : version->second;
  PLUMB_CHECK(found == kCheckpointVersion, "{} has version {} of the checkpoint format, this program reads {}",
              checkpoint.file(), in_quotes(found), kCheckpointVersion);
}

void load_weights(Network& network, const std::filesystem::path& path) {
  const TensorFileReader reader(path);
  fill(tensors_of(network), network.name(), reader, wanted_prefix(reader, network));
}

void load_weights(std::span<const NamedTensor> tensors, const std::filesystem::path& path) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      PLUMB_CHECK(tensors[i].name != tensors[j].name, "load_weights: two tensors are named {}",
                  in_quotes(tensors[i].name));
    }
  }
  fill(tensors, "the list", TensorFileReader(path), "");
}

void save_weights(const Network& network, const std::filesystem::path& path) {
  save_weights(tensors_of(network), path);
}

void save_weights(std::span<const NamedTensor> tensors, const std::filesystem::path& path) {
  save_safetensors(path, tensors, {{"format", "pt"}});
}

}  // namespace plumb::models
