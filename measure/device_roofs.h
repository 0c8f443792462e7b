// What a GPU can do at most: gives a lower bound for a kernel's time.
#pragma once

#include <memory>
#include <vector>

#include "core/context.h"
#include "core/dtype.h"
#include "core/runtime.h"
#include "dispatch/trial.h"

namespace plumb::measure {

/// Rates of a GPU, in units per second.
struct DeviceRoofs {
  double bytes = 0;                    ///< of memory, read and written
  double f32 = 0, tf32 = 0, bf16 = 0;  ///< FLOPs; for tensor cores, those of dense products
  double f64 = 0;                      ///< only if measured
  bool is_measured = false;            ///< whether measured, by a copy and products; else from clocks and widths
  double flops(DType t, MathMode m) const;
  /// The least seconds that this work can take.
  double floor(double bytes, double flops, DType t, MathMode m) const;
};
/// Measures a copy of much memory and the best of a few products on a device that is present; takes a few seconds.
DeviceRoofs measure_roofs(Device device);
/// Measures the products again and keeps the higher rates.
void raise_arithmetic(DeviceRoofs& roofs, Device device);

/// Times the device's own copy past the caches: it reads half of the bytes and writes the other half.
class DeviceCopy {
 public:
  DeviceCopy(Device device, size_t bytes);
  void run(Runtime::Stream stream);
  /// How many sets of buffers are used in turn before the first is used again.
  int sets() const { return static_cast<int>(sets_.size()); }
  /// The seconds of the fastest of `rounds` rounds.
  double least_seconds(int rounds = 10);

 private:
  Runtime& runtime_;
  size_t half_;
  std::vector<std::unique_ptr<detail::Scratch>> sets_;
  size_t next_ = 0;
};

}  // namespace plumb::measure
