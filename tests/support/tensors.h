// Tensors for tests. They are made from a fixed seed on the thread's device (DeviceScope), equal on every device, and
// are read in logical order whatever the layout and device.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/tensor.h"

namespace plumb::test {

/// A function of tensors, for gradient checks and cases.
using Function = std::function<Tensor(std::span<const Tensor>)>;

/// x on the host, where the test can read it.
Tensor on_host(const Tensor& x);
/// The elements in row-major order of the logical dimensions, whatever the layout and the dtype.
std::vector<double> to_doubles(const Tensor& x);
/// The same for device memory that no tensor holds.
std::vector<double> to_doubles(const void* data, const TensorSpec& spec, Device device = {});
/// A tensor from elements in row-major logical order, rounded to the dtype of the spec.
Tensor from_doubles(std::span<const double> values, const TensorSpec& spec);
/// The elements of x in another dtype and layout, converted by the test's own loops.
Tensor converted(const Tensor& x, DType dtype, Layout layout);

/// The least number of pieces of `bytes` bytes in a tensor that kernels write past the caches.
int64_t pieces_past_caches(int64_t bytes);

/// The inputs that need a gradient.
std::vector<Tensor> leaves_of(std::span<const Tensor> inputs);

/// Numbers from U[low, high): the same for a seed and a shape in every layout.
Tensor random_tensor(const TensorSpec& spec, uint64_t seed, double low = -1, double high = 1);
/// Whole numbers from [-limit, limit]. Sums of up to 2^24 / limit^2 products of them are exact in f32, in any order.
Tensor small_integers(const TensorSpec& spec, uint64_t seed, int limit = 4);

}  // namespace plumb::test
