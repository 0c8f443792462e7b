// What a GPU could do at most: the floor under a kernel's time.
#pragma once

#include <string>

#include "core/context.h"
#include "core/dtype.h"
#include "core/runtime.h"

namespace plumb::app {

/// A described device by name, "h200" or "a100", or by the JSON file of a description. Throws a sentence otherwise.
std::string device_description(const std::string& name_or_file);
/// The names of those that are built in.
std::vector<std::string> described_devices();

/// Rates of a GPU, in units a second.
struct DeviceRoofs {
  double bytes = 0;                    ///< of memory, read and written
  double f32 = 0, tf32 = 0, bf16 = 0;  ///< FLOPs; those of tensor cores are dense
  bool is_measured = false;            ///< what a copy and a large product reach, not what clocks and widths give
  double flops(DType t, MathMode m) const;
  /// The least seconds for this work.
  double floor(double bytes, double flops, DType t, MathMode m) const;
};
/// Of the device of a description; what is not known of it is 0.
DeviceRoofs roofs_of(const std::string& description);

}  // namespace plumb::app
