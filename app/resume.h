// Going on from a checkpoint: whether it is of the run that was asked for.
#pragma once

#include <map>
#include <string>

#include "train/checkpoint.h"
#include "train/trainer.h"

namespace plumb::app {

/// What --resume finds in a folder. Throws a sentence when there is no checkpoint or it is not valid, and when an entry
/// of `expected` differs from its config: the first that does is named, as an option of `plumb train`. The config may
/// have others.
training::Checkpoint resumable(const std::string& folder, const std::map<std::string, std::string>& expected);
/// Fills the state of a trainer from it. Throws a sentence when its tensors are another network's or make no sense, and
/// when no epoch is left of `epochs`. Returns how many are done.
int64_t resume(const std::string& folder, training::Trainer& trainer, int64_t epochs);

}  // namespace plumb::app
