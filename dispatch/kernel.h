// One piece of work, prepared for fixed specs on one target, and then run any number of times on pointers.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "../core/context.h"
#include "../core/runtime.h"
#include "../core/spec.h"

namespace plumb {

/// The pointers of one run. Inputs that the op names in Writes are written.
struct Launch {
  void* const* in;
  void* const* out;
  void* workspace;
  void* stream = nullptr;  ///< of the device, that the work goes to
};

/// An input that a kernel wants in a format of its own. The gate keeps the pack on the value and renews it when stale.
struct PackRequest {
  int input;
  Layout layout;
};

/// What a prepared kernel says of itself. It goes into every benchmark row and profile: what ran is never hidden.
struct KernelInfo {
  std::string name;         ///< the implementation, "onednn:brgconv:avx512_core"
  std::string algorithm;    ///< its candidate name, "direct", "winograd_f4x4"; filled in by the gate
  std::string passed_over;  ///< what its author would rather have taken, had it the same bits from run to run
  size_t passed_over_workspace_bytes = 0;
  bool is_offered_by_vendor = false;  ///< whether a library of a GPU's vendor had a candidate; filled in by the gate
  std::string notes;                  ///< what the vendor's library says of it: "tensor_core nondeterministic"
  size_t workspace_bytes = 0;         ///< of Launch::workspace
  int conversions = 0;                ///< layout conversions inside one run
  int launches = 0;                   ///< on a device
  double flops = 0;                   ///< arithmetic by the op's definition, 2 a multiply-add; filled in by the gate
  double bytes = 0;                   ///< bytes that must move: inputs read and outputs written once; the
                                      ///< gate adds that to what the kernel says of inputs that it writes
  std::vector<PackRequest> packs;
};

/// One piece of work, prepared for fixed specs on one target: what can be decided from these is decided when it is
/// made. The gate keeps it, and runs it any number of times.
class Kernel {
 public:
  virtual ~Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  /// Never allocates or synchronises. Any number of threads may run one kernel at the same time.
  virtual void run(const Launch&) const = 0;
  const KernelInfo& info() const { return info_; }
  KernelInfo& info() { return info_; }

 protected:
  explicit Kernel(std::string name) { info_.name = std::move(name); }

 private:
  KernelInfo info_;
};

/// What is to be prepared. `Params` are the op's attributes as plain bytes.
template <class Params>
struct Problem {
  const Params& params;
  std::span<const TensorSpec> in, out;
  int threads;
  MathMode math;
  Device device{};
};

/// The ways a backend offers to do one piece of work, in the order in which their author would try them.
class Candidates {
 public:
  using Make = std::function<std::unique_ptr<Kernel>()>;
  struct Candidate {
    std::string algorithm;
    Make make;
    bool deterministic;  // the same bits from run to run, with the same number of threads
  };
  /// `algorithm` names the way within its op ("direct", "winograd_f2x2"); a policy of algorithm "winograd" takes the
  /// whole family (is_of_family). `make` is called when the candidate is tried, and may return null to decline.
  void add(std::string algorithm, Make make, bool deterministic = true) {
    all_.push_back({std::move(algorithm), std::move(make), deterministic});
  }
  const std::vector<Candidate>& all() const { return all_; }

 private:
  std::vector<Candidate> all_;
};

/// Parameters of an op that has none.
struct NoParams {};

}  // namespace plumb
