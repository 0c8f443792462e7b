// The state of a training run on disk, from which it goes on bit for bit.
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

/// What a checkpoint says besides its tensors.
struct Checkpoint {
  int64_t epochs_done = 0;
  std::map<std::string, std::string> config{};  ///< what the run was asked for, in words: "model" -> "alexnet"
  TunedAlgorithms choices{};                    ///< the kernels that measuring chose
  Layout layout = Layout::kNchw;                ///< of images and activations
};

/// Writes FOLDER/checkpoint.safetensors, and makes the folder if there is none. The checkpoint that was there stays
/// whole until the new one is complete. Tensors are row-major, of any dtype. Throws a sentence when it cannot be
/// written.
void save_checkpoint(const std::filesystem::path& folder, std::span<const models::NamedTensor> state,
                     const Checkpoint& checkpoint);

/// The file of a folder's checkpoint.
std::filesystem::path checkpoint_file(const std::filesystem::path& folder);
/// The file of weights that a path means: itself, or the checkpoint in it if it is a folder with one.
std::filesystem::path weights_file(const std::filesystem::path& path);
/// The convention in which the weights of a file were trained, if it is a checkpoint that says so; nothing for other
/// files of safetensors. Throws a sentence when the file is not valid or names a convention that is unknown.
std::optional<Convention> convention_of(const std::filesystem::path& weights);

/// Fills the tensors of `state` in place from the checkpoint in a folder, bit for bit, and returns the rest. Before it
/// writes to one it throws a sentence when the checkpoint is missing or not valid, or when its tensors are not exactly
/// those of `state` by name, shape and dtype.
Checkpoint load_checkpoint(const std::filesystem::path& folder, std::span<const models::NamedTensor> state);

/// What the checkpoint in a folder says, without reading its tensors.
Checkpoint peek_checkpoint(const std::filesystem::path& folder);

}  // namespace plumb::training
