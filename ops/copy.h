// Copies. Tensor has them as methods: Tensor::clone and Tensor::copy_from.
#pragma once

#include "../core/tape.h"

namespace plumb {

/// A copy of x with its own memory and x's spec. Any dtype and layout. Keeps nothing.
Tensor clone(const Tensor& x);
/// Writes the elements of x into the memory of `to`: observed, counted and captured as any op; raises the version of
/// `to`. If x is on another device, it is a plain copy. Puts nothing on the tape; gradient edges stay as they are. Any
/// dtype and layout. Throws unless both have one spec, and inside a capture if they are on two devices.
void copy_into(const Tensor& to, const Tensor& x);

}  // namespace plumb
