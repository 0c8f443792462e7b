// Copies, under the names that the handle has them by: Tensor::clone and Tensor::copy_from.
#pragma once

#include "../core/tape.h"

namespace plumb {

/// A tensor of its own with x's elements, of x's spec. Any dtype and layout. Keeps nothing.
Tensor clone(const Tensor& x);
/// Writes the elements of x into the memory of `to`: seen, counted and captured as any op, and the version of `to`
/// rises. From another device it is a copy of bytes, which is not captured. Nothing is put on the tape, and gradient
/// edges stay what they are. Any dtype and layout. Throws unless both are of one spec.
void copy_into(const Tensor& to, const Tensor& x);

}  // namespace plumb
