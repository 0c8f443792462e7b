// The driver that cuDNN finds while it plans for a GPU that is not there.
#pragma once

namespace plumb::app {

/// Opens the machine's driver, or, where there is none, the one that stands in for it and is beside this program.
/// Before cuDNN is first used, and only in a process that runs nothing on a GPU. Returns "the machine's", "a stand-in",
/// or "none", in which case engines that are compiled at run time are left out of all plans.
const char* open_planning_driver();

}  // namespace plumb::app
