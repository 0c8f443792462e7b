// Kernels of the tests' own.
#pragma once

#include <functional>

#include "dispatch/kernel.h"

namespace plumb::test {

/// A kernel that is a function of its pointers. info() may be filled in before it is handed over.
class FunctionKernel final : public Kernel {
 public:
  using Run = std::function<void(const Launch&)>;
  explicit FunctionKernel(Run run, std::string name = "test:function")
      : Kernel(std::move(name)), run_(std::move(run)) {}
  void run(const Launch& l) const override { run_(l); }

 private:
  Run run_;
};

}  // namespace plumb::test
