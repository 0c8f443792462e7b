// The weights of a network in a safetensors file, by PyTorch's names.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

#include "network.h"

namespace plumb::models {

class TensorFileReader;

/// The metadata "format" and "version" of a checkpoint of `plumb train`, and what the names of a network's tensors
/// begin with in it.
inline constexpr std::string_view kCheckpointFormat = "plumbline checkpoint", kCheckpointVersion = "2",
                                  kCheckpointModel = "model.";
/// Throws a sentence if a checkpoint has another version, whose names may mean something else.
void check_checkpoint_version(const TensorFileReader& checkpoint);

/// Fills the parameters and buffers of a network from a safetensors file by name. Takes F32, F64, F16 and BF16, rounded
/// to f32; a "module." in front of all names (PyTorch's DataParallel) and "num_batches_tracked" are passed over. Of
/// a checkpoint it takes the network's part. Throws a sentence, and leaves the network as it was, when the file is not
/// valid, a tensor is missing, not the network's or of another shape or kind.
void load_weights(Network& network, const std::filesystem::path& path);

/// The same for any list of named, row-major tensors of floating dtypes, of which each is rounded to its own: the
/// weights of a model of one's own.
void load_weights(std::span<const NamedTensor> tensors, const std::filesystem::path& path);

/// Writes the parameters and buffers of a network, in the order of its layers. Throws as save_safetensors does.
void save_weights(const Network& network, const std::filesystem::path& path);
/// Writes any list of named, row-major tensors.
void save_weights(std::span<const NamedTensor> tensors, const std::filesystem::path& path);

}  // namespace plumb::models
