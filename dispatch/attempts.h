// Making the candidates of a choice that is measured.
#pragma once

#include <exception>
#include <memory>
#include <vector>

#include "kernel.h"

namespace plumb::detail {

/// A candidate's kernel, or what it threw instead; neither, if it declined.
struct Attempt {
  std::unique_ptr<Kernel> kernel;
  std::exception_ptr error;
};
/// The kernels of these, in their order. What compiles machine code is made by several threads at once, since each
/// takes up to a second, and made once: a plan of cuDNN's that compiles cannot be made again.
std::vector<Attempt> make_all(const std::vector<const Candidates::Candidate*>& wanted);

}  // namespace plumb::detail
