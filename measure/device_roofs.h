// What a GPU can do at most: gives a lower bound for a kernel's time.
#pragma once

#include <memory>
#include <vector>

#include "core/context.h"
#include "core/dtype.h"
#include "core/runtime.h"
#include "dispatch/kernel_cache.h"
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

/// Times a copy past the caches, which reads half of the bytes and writes the other half: the device's own or by a
/// kernel, whichever is faster (on an H200 below some 100 MB the device's own takes half as long again).
class DeviceCopy {
 public:
  DeviceCopy(Device device, size_t bytes);
  void run(Runtime::Stream stream) { run(by_kernel_, stream); }
  /// Which of the two it is.
  const char* way() const { return by_kernel_ ? "a kernel that copies" : "the device's own copy"; }
  /// How many sets of buffers are used in turn before the first is used again.
  int sets() const { return static_cast<int>(sets_.size()); }
  /// The seconds of the fastest of `rounds` rounds.
  double least_seconds(int rounds = 10) { return least_seconds(by_kernel_, rounds); }

 private:
  void run(bool by_kernel, Runtime::Stream stream);
  double least_seconds(bool by_kernel, int rounds);
  Runtime& runtime_;
  size_t half_;
  detail::Ref<PreparedKernel> kernel_;
  std::vector<std::unique_ptr<detail::Scratch>> sets_;
  size_t next_ = 0;
  bool by_kernel_ = false;
};

}  // namespace plumb::measure
