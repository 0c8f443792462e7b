// The results of measuring: in this process, and on disk by machine or device and by library versions.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "../core/device.h"

namespace plumb {

/// Maps a description of a piece of work to its fastest algorithm.
using TunedAlgorithms = std::map<std::string, std::string>;

namespace detail {
/// The algorithm stored for a piece of work on a device, in this process or in the device's file, if `is_valid` accepts
/// it: a stored algorithm may no longer exist. Nothing if the work was never measured.
std::optional<std::string> find_tuned(Device device, const std::string& work,
                                      const std::function<bool(const std::string&)>& is_valid);
/// Stores a result of measuring, in this process and on disk.
void keep_tuned(Device device, const std::string& work, const std::string& algorithm);
}  // namespace detail

/// The choices that this process measured or adopted. A checkpoint stores them, so that a resumed run has the same
/// bits.
TunedAlgorithms tuning_in_use();
/// Chooses by this table instead of measuring again. Kernels that are already prepared stay.
void adopt_tuning(const TunedAlgorithms& choices);

}  // namespace plumb
