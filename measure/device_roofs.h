// What a GPU could do at most: the floor under a kernel's time.
#pragma once

#include <memory>
#include <vector>

#include "core/context.h"
#include "core/dtype.h"
#include "core/runtime.h"
#include "dispatch/trial.h"

namespace plumb::measure {

/// Rates of a GPU, in units a second.
struct DeviceRoofs {
  double bytes = 0;                    ///< of memory, read and written
  double f32 = 0, tf32 = 0, bf16 = 0;  ///< FLOPs; those of tensor cores are dense
  double f64 = 0;                      ///< where it is measured
  bool is_measured = false;            ///< what a copy and a large product reach, not what clocks and widths give
  double flops(DType t, MathMode m) const;
  /// The least seconds for this work.
  double floor(double bytes, double flops, DType t, MathMode m) const;
};
/// What a copy of much memory and the best of a few products reach on a device that is here; takes a few seconds.
DeviceRoofs measure_roofs(Device device);
/// Measures the products once more and keeps what is higher.
void raise_arithmetic(DeviceRoofs& roofs, Device device);

/// The time of a device's own copy: half of the bytes read, and as many written, past the caches.
class DeviceCopy {
 public:
  DeviceCopy(Device device, size_t bytes);
  void run(Runtime::Stream stream);
  /// Of buffers to go through before the first comes round.
  int sets() const { return static_cast<int>(sets_.size()); }
  /// The least seconds of `rounds` rounds.
  double least_seconds(int rounds = 10);

 private:
  Runtime& runtime_;
  size_t half_;
  std::vector<std::unique_ptr<detail::Scratch>> sets_;
  size_t next_ = 0;
};

}  // namespace plumb::measure
