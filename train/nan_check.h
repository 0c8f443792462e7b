// A search for NaN, kernel by kernel.
#pragma once

#include "../dispatch/recorder.h"

namespace plumb::training {

/// Throws at the first kernel whose output, or what it was given, holds a NaN, and names it. The inputs count because a
/// kernel may lose a NaN: a comparison, or an average over other elements, does.
class NanCheck final : public Observer {
 public:
  void after(const PreparedKernel&, const Launch&) override;
};

}  // namespace plumb::training
