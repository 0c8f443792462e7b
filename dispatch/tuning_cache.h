// What measuring has found out: in this process, and on the disk for this machine, or device, and these libraries.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "../core/device.h"

namespace plumb {

/// A description of a piece of work -> the algorithm that was fastest.
using TunedAlgorithms = std::map<std::string, std::string>;

namespace detail {
/// What is remembered of a piece of work on a device, by this process or by the disk, and is still valid: the file may
/// have been cut short, and algorithms go. Nothing if it was never measured. The file is the device's.
std::optional<std::string> find_tuned(Device device, const std::string& work,
                                      const std::function<bool(const std::string&)>& is_valid);
/// Remembers what measuring has found, here and on the disk.
void keep_tuned(Device device, const std::string& work, const std::string& algorithm);
}  // namespace detail

/// What measuring has decided, or was told, in this process. A checkpoint records it, so that a resumed run is bitwise
/// the same.
TunedAlgorithms tuning_in_use();
/// Decides by this table instead of measuring anew. Kernels that are already prepared stay.
void adopt_tuning(const TunedAlgorithms& choices);

}  // namespace plumb
