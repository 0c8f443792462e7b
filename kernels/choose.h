// Choosing among candidates: by order, by measuring, or by name.
#pragma once

#include <map>

#include "kernels/cache.h"

namespace plumb {

/// Prepares the candidate that the choice of `p` picks. Throws a sentence when there is none.
std::unique_ptr<Kernel> choose_kernel(const Prepared& p);

/// The results of measuring: a description of the work -> the algorithm that was fastest.
using Choices = std::map<std::string, std::string>;
/// The result of `measure` for a piece of work that is larger than a kernel, measured once on this machine and
/// remembered like the choice of a kernel.
std::string remembered_choice(const std::string& work, const std::function<std::string()>& measure);
/// What measuring has decided, or was told, in this process. A checkpoint records it, so that a resumed run is bitwise
/// the same.
Choices choices_in_use();
/// Decides by this table instead of measuring anew. Kernels that are already prepared stay.
void adopt_choices(const Choices& choices);

}  // namespace plumb
