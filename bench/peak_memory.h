// How much memory the process has held at most.
#pragma once

#include <cstdint>

namespace plumb::bench {

/// The largest resident size so far, in bytes: VmHWM. What getrusage calls ru_maxrss begins at the peak of the process
/// that started this one.
int64_t peak_rss_bytes();
/// Lets the peak begin anew at what is resident now. False where the system does not allow it.
bool reset_peak_rss();

}  // namespace plumb::bench
