// A prepared kernel with its own scratch memory, to be timed by measuring and by benchmarks.
#pragma once

#include "../core/block.h"
#include "../core/random.h"
#include "../core/runtime.h"
#include "kernel.h"

namespace plumb::detail {

/// The random numbers that fill operands: floating ones from U[low, high), integers from {0, ..., most}.
struct Values {
  double low = -1, high = 1;
  int64_t most = 1;  ///< by default 1: labels, masks and positions that are always valid
};

/// Inputs and outputs of work on a device, filled with random numbers, since zeros run faster than real data.
class Scratch {
 public:
  Scratch(std::span<const TensorSpec> in, std::span<const TensorSpec> out, Values values = {}, Device device = {});

  Device device() const { return device_; }
  /// Uninitialised device memory that lives as long as the scratch.
  void* block(size_t bytes);
  const std::vector<void*>& in() const { return in_; }
  const std::vector<void*>& out() const { return out_; }
  /// The total size of its memory.
  size_t bytes() const;

 private:
  void* filled(const TensorSpec& s, Values values);
  void fill_there(void* data, const TensorSpec& s, const Distribution& d, uint64_t seed) const;
  Device device_;
  std::vector<void*> in_, out_;
  std::vector<Block> blocks_;
  uint64_t seed_ = 0;
};

/// A kernel bound to scratch memory. A run, on a stream of the scratch's device (null on the host), includes packing
/// the inputs that the kernel wants packed, since in training the weights change between runs.
class Trial {
 public:
  /// `in` are the plain specs of the kernel's inputs. Scratch and kernel must outlive the trial.
  Trial(Scratch& scratch, std::span<const TensorSpec> in, const Kernel& kernel);
  /// Trials that run one at a time: for packs and workspaces they share one block, as large as the largest needs.
  static std::vector<Trial> in_turn(Scratch& scratch, std::span<const TensorSpec> in,
                                    std::span<const Kernel* const> kernels);
  /// Packs the inputs again.
  void pack(Runtime::Stream stream) const;
  /// Packs, then runs the kernel.
  void run(Runtime::Stream stream) const {
    pack(stream);
    kernel_->run({in_.data(), out_.data(), workspace_, stream});
  }

 private:
  struct Packer {
    std::unique_ptr<Kernel> kernel;
    size_t input;
    size_t pack_bytes;
    void* plain;
    void* pack;
    void* workspace;
  };
  struct Unbound {};
  Trial(Scratch& scratch, std::span<const TensorSpec> in, const Kernel& kernel, Unbound);
  size_t bytes() const;
  void bind(void* memory);
  const Kernel* kernel_;
  std::vector<void*> in_, out_;
  std::vector<Packer> packers_;
  void* workspace_ = nullptr;
};

}  // namespace plumb::detail
