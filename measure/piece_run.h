// The pieces of a training step, each on memory of its own, and oneDNN's way of doing the same. Packing of weights and
// conversions inside a kernel can be timed separately. When and how often to time is decided elsewhere.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "dispatch/timing.h"
#include "dispatch/trial.h"
#include "measure/layout_pieces.h"
#include "measure/onednn/raw.h"

namespace plumb::measure {

/// Work that is timed as a whole; short work is repeated until the clock sees it.
class TimedParts {
 public:
  void add(Device device, detail::Run work, const detail::TimedOptions& options = {});
  bool empty() const { return parts_.empty(); }
  /// Seconds of doing every part once.
  double seconds();

 private:
  struct Part {
    std::unique_ptr<detail::Timed> timed;
    int times;
  };
  std::vector<Part> parts_;
};

class PieceRun {
 public:
  explicit PieceRun(const Piece& piece);
  /// Seconds of one run, including the packing of weights.
  double run() { return run_.seconds(); }
  /// Whether weights are packed or something is converted inside the kernel, and the seconds of that.
  bool converts() const { return !conversions_.empty(); }
  double convert() { return conversions_.seconds(); }
  /// Of a Winograd kernel, against f64; not finite if its result is not.
  std::optional<double> error() const;

 private:
  void add_packing();
  void add_inner_conversions();
  void add_casts(bool of_packed);
  void add_rows_of_pixels(std::span<const TensorSpec> specs);
  void add_reorders(std::span<const TensorSpec> specs, std::string_view algorithm);
  Device device() const { return piece_.kernel->policy.device; }
  Piece piece_;
  detail::Scratch scratch_;
  detail::Trial trial_;
  TimedParts run_, conversions_;
};

/// The same work with all formats left to oneDNN.
class OnednnBest {
 public:
  /// Nothing for kernels without weights or on another device, and if oneDNN cannot do the work.
  explicit OnednnBest(const Piece& piece);
  explicit operator bool() const { return !runs_.empty(); }
  double run() { return runs_.seconds(); }

 private:
  TimedParts runs_;
};

}  // namespace plumb::measure
