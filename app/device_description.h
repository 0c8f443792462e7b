// Devices that need not be there, by their descriptions.
#pragma once

#include <string>
#include <vector>

#include "measure/command/command_line.h"
#include "measure/device_roofs.h"

namespace plumb::app {

/// A described device by name, "h200" or "a100", or by the JSON file of a description. Throws a sentence otherwise.
std::string device_description(const std::string& name_or_file);
/// The names of those that are built in.
std::vector<std::string> described_devices();
/// --on, which names one and must be given.
void add_device_description_option(const command::CommandLine& cmd, std::string& on);

/// The roofs of the device of a description; what is not known of it is 0.
measure::DeviceRoofs roofs_of(const std::string& description);

}  // namespace plumb::app
