// A problem as work that is ready to run: a single op, or a network's forward pass or training step.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/compare/plumbline/catalogue.h"
#include "core/convention.h"

namespace plumb::compare {

/// How a problem is done, from words like "best captured nhwc", "best charged chwn", "heuristic nchw", "only:direct
/// nhwc", "best auto keras" or "reference": whose kernels and how they are picked, in which execution mode, in which
/// layout, by whose convention.
struct Mode {
  Policy policy;
  bool captured = false;
  std::string layout = "nchw";       ///< or "auto" for a network: the fastest measured; "blocked": oneDNN's own formats
  bool is_charged = false;           ///< images are row-major before and after an op, and are converted in every step
  std::string algorithm;             ///< or "": the one that was named, or its family
  bool is_f64 = false;               ///< the reference: plain loops in f64
  std::string update = "fused";      ///< of parameters alone: fused, per_tensor or chain
  std::string input = "overlapped";  ///< of a pipeline: augment, step, after or overlapped
  int reads = 0;                     ///< how often a call of several training steps reads the loss; 0: in each
  Convention convention = Convention::kPyTorch;  ///< whose optimizers a network is trained by
};
/// Throws on an unknown word.
Mode mode_of(const std::string& words);

/// Work on tensors that were read from a file. Its policy is that of the mode, whatever the thread's.
class Work {
 public:
  virtual ~Work() = default;
  /// Does the work once.
  virtual void step() = 0;
  /// Does the work once, without an update, and returns the output and "d" + NAME for every gradient, each in the
  /// layout and dtype that it has.
  virtual Tensors results() = 0;
  /// The losses that all steps so far have read. Throws for what is no training.
  virtual const std::vector<double>& losses() const { fail("there are losses of a network's training alone"); }
  /// The parameters as the steps so far have left them, by name. Throws for what is no training.
  virtual Tensors weights() const { fail("a network's training alone changes weights"); }
  /// Other images and labels, of the same shapes, for the steps that follow. Throws for what is no training.
  virtual void feed(const Tensor& /*images*/, const Tensor& /*labels*/) {
    fail("a network's training alone has images");
  }
  /// How many images a step has; 0 for what is no training.
  virtual int64_t batch() const { return 0; }
  /// The class that a network gives to each image. Throws for what is no training.
  virtual Tensor predicted() { fail("a network's training alone has images"); }
  /// Its layout, and what else a record says of it.
  virtual nlohmann::json facts() const = 0;
};

/// A convolution that oneDNN does in formats of its own choice, each direction by itself: what it keeps between them
/// has one format where they agree. Charged, its tensors are row-major before and after. Throws if oneDNN has none.
std::unique_ptr<Work> prepare_blocked(const nlohmann::json& problem, const Tensors& tensors, const Mode& mode);

/// Prepares a problem (problems/__init__.py says what it holds), its tensors on the host, for the device of the
/// DeviceScope, in which it must be run as well. Throws a sentence if it cannot be done so.
std::unique_ptr<Work> prepare(const nlohmann::json& problem, Tensors tensors, const Mode& mode);

}  // namespace plumb::compare
