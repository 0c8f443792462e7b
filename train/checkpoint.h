// The state of a training run on disk; a run resumed from it has the same bits.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "../core/convention.h"
#include "../core/layout.h"
#include "../dispatch/tuning_cache.h"
#include "../models/network.h"

namespace plumb::training {

/// What a checkpoint stores besides tensors.
struct Checkpoint {
  int64_t epochs_done = 0;
  std::map<std::string, std::string> config{};  ///< the run's settings as text: "model" -> "alexnet"
  TunedAlgorithms choices{};                    ///< the kernels that measuring chose
  Layout layout = Layout::kNchw;                ///< of images and activations
};

/// Writes FOLDER/checkpoint.safetensors, and makes the folder if needed. An old checkpoint stays whole until the new
/// one is complete. Tensors are row-major, of any dtype. Throws if the file cannot be written.
void save_checkpoint(const std::filesystem::path& folder, std::span<const models::NamedTensor> state,
                     const Checkpoint& checkpoint);

/// The path of the checkpoint in a folder.
std::filesystem::path checkpoint_file(const std::filesystem::path& folder);
/// The file of weights that a path stands for: the checkpoint in it if it is a folder with one, else the path itself.
std::filesystem::path weights_file(const std::filesystem::path& path);
/// The convention with which a file's weights were trained, if the file is a checkpoint that says so; nothing for other
/// safetensors files. Throws if the file is not valid or names an unknown convention.
std::optional<Convention> convention_of(const std::filesystem::path& weights);

/// Fills the tensors of `state` in place from the checkpoint in a folder, bit for bit, and returns the rest. Throws,
/// before it writes any of them, if the checkpoint is missing or not valid, or if its tensors are not exactly those of
/// `state` by name, shape and dtype.
Checkpoint load_checkpoint(const std::filesystem::path& folder, std::span<const models::NamedTensor> state);

/// The checkpoint in a folder without its tensors.
Checkpoint peek_checkpoint(const std::filesystem::path& folder);

}  // namespace plumb::training
