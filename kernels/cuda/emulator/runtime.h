// The emulated device. A program that links the kernels compiled for the host has one, as cuda:0.
#pragma once

#include <memory>

#include "core/runtime.h"

namespace plumb::emulator {

/// When the device does what is asked of it: at once; or when somebody waits for it, copies of the second stream only
/// when kernels or the host wait for these; or copies as soon as what they wait for allows, and kernels as late as
/// that.
enum class Pace : uint8_t { kAtOnce, kCopiesLate, kCopiesFirst };

/// One more, for add_device. Two multiprocessors make small grids, which go round their loops; many make large ones.
std::unique_ptr<Runtime> make_runtime(int multiprocessors = 2, Pace pace = Pace::kAtOnce);
/// Whether the host reaches the devices' memory only while they work, as it never would a real one's: what reads
/// through a pointer of theirs is seen, by a signal. A launch then takes some microseconds a block.
void hide_memory(bool hidden);

}  // namespace plumb::emulator
