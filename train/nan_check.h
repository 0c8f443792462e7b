// Finds the first kernel with a NaN.
#pragma once

#include "../dispatch/recorder.h"

namespace plumb::training {

/// Throws at the first kernel with a NaN in an input or output, and names the kernel. Inputs are checked, too, since a
/// kernel may lose a NaN: by a comparison, or if it does not use the element.
class NanCheck final : public Observer {
 public:
  void after(const PreparedKernel&, const Launch&) override;
};

}  // namespace plumb::training
