// One sentence for each reason why a program with CUDA has no device.
#pragma once

#include <optional>
#include <string>

#include "core/error.h"
#include "core/runtime.h"

namespace plumb::cuda {

/// What was found of drivers and devices.
struct Found {
  int status = 0;  ///< of counting devices, and CUDA's text for it
  std::string status_text;
  int driver = 0, runtime = 0;    ///< versions of CUDA, 13000 for 13.0; a driver of 0 is none
  const char* visible = nullptr;  ///< the variable CUDA_VISIBLE_DEVICES
  int oldest = 0;                 ///< the least capability that the kernels run on
  std::optional<DeviceProperties> too_old{};
};

inline std::string why_no_device(const Found& f) {
  const auto version = [](int v) { return message("{}.{}", v / 1000, v % 1000 / 10); };
  if (f.driver == 0) return "there is no CUDA driver (libcuda.so.1) on this machine";
  if (f.driver / 1000 < f.runtime / 1000) {
    return message("the driver is of CUDA {}, and this program was built with {}; update the driver", version(f.driver),
                   version(f.runtime));
  }
  if (f.visible && !*f.visible) return "CUDA_VISIBLE_DEVICES is empty, which hides every GPU";
  if (f.too_old) {
    const int c = f.too_old->capability;
    return message("{} has compute capability {}.{}, and the kernels need {}.{}", f.too_old->name, c / 10, c % 10,
                   f.oldest / 10, f.oldest % 10);
  }
  std::string text = message("CUDA finds no GPU ({})", f.status_text);
  if (f.visible) text += message(", CUDA_VISIBLE_DEVICES being \"{}\"", f.visible);
  return text;
}

}  // namespace plumb::cuda
