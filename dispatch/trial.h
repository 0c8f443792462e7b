// A prepared kernel on scratch memory of its own: what is timed when candidates are measured, and by benchmarks.
#pragma once

#include "../core/block.h"
#include "../core/random.h"
#include "../core/runtime.h"
#include "kernel.h"

namespace plumb::detail {

/// The random numbers that operands are filled with: floating ones are from U[low, high), integers from {0, ..., most}.
struct Values {
  double low = -1, high = 1;
  int64_t most = 1;  ///< labels, masks and positions that always exist
};

/// Inputs and outputs of a piece of work on a device, filled with random numbers: timing on zeros flatters.
class Scratch {
 public:
  Scratch(std::span<const TensorSpec> in, std::span<const TensorSpec> out, Values values = {}, Device device = {});

  Device device() const { return device_; }
  /// Uninitialised memory of the device that lives as long as the scratch.
  void* block(size_t bytes);
  const std::vector<void*>& in() const { return in_; }
  const std::vector<void*>& out() const { return out_; }
  /// All bytes that it holds.
  size_t bytes() const;

 private:
  void* filled(const TensorSpec& s, Values values);
  void fill_there(void* data, const TensorSpec& s, const Distribution& d, uint64_t seed) const;
  Device device_;
  std::vector<void*> in_, out_;
  std::vector<Block> blocks_;
  uint64_t seed_ = 0;
};

/// A kernel bound to scratch memory. Packing what it wants packed is part of a run: in training the weights have
/// changed since the last one.
class Trial {
 public:
  /// `in` are the plain specs of the kernel's inputs. Scratch and kernel must outlive it.
  Trial(Scratch& scratch, std::span<const TensorSpec> in, const Kernel& kernel);
  /// Trials that run one at a time, and so have the memory of the largest for their packs and workspaces together.
  static std::vector<Trial> in_turn(Scratch& scratch, std::span<const TensorSpec> in,
                                    std::span<const Kernel* const> kernels);
  /// Makes the packs anew.
  void pack() const { pack(stream_); }
  void pack(Runtime::Stream stream) const;
  /// One run on the packs as they are.
  void compute() const { compute(stream_); }
  /// Both.
  void run() const { run(stream_); }
  /// Both, on another stream of the device: one on which work is captured.
  void run(Runtime::Stream stream) const {
    pack(stream);
    compute(stream);
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
  void compute(Runtime::Stream stream) const { kernel_->run({in_.data(), out_.data(), workspace_, stream}); }
  const Kernel* kernel_;
  std::vector<void*> in_, out_;
  std::vector<Packer> packers_;
  void* workspace_ = nullptr;
  Runtime::Stream stream_ = nullptr;  // of a device
};

}  // namespace plumb::detail
