// How much memory the process has held at most.
#pragma once

#include <cstdint>

namespace plumb::bench {

/// The largest resident size so far, in bytes: VmHWM. What getrusage calls ru_maxrss begins at the peak of the process
/// that started this one.
int64_t peak_rss_bytes();

}  // namespace plumb::bench
