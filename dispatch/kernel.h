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

/// Whose code a kernel is, wherever Plumbline's own stands around it (a conversion, a ReLU behind a convolution).
enum class Provider : uint8_t { kPlumbline, kOneDnn, kCudnn, kCublasLt, kReference };
/// "plumbline", "onednn", "cudnn", "cublaslt", "reference".
const char* to_string(Provider p);
/// Whether it is the library of a processor's or a GPU's vendor: the plumb line itself (KernelSet::kVendor).
inline bool is_vendor(Provider p) {
  return p == Provider::kOneDnn || p == Provider::kCudnn || p == Provider::kCublasLt;
}

/// What a prepared kernel says of itself. It goes into every benchmark row and profile: what ran is never hidden.
struct KernelInfo {
  std::string name;                          ///< the implementation, "onednn:brgconv:avx512_core"
  std::string algorithm;                     ///< its candidate name, "direct", "winograd_f4x4"; filled in by the gate
  Provider provider = Provider::kPlumbline;  ///< filled in by the gate, from the candidate
  std::string passed_over;  ///< what its author would rather have taken, had it the same bits from run to run
  size_t passed_over_workspace_bytes = 0;
  bool is_offered_by_vendor = false;  ///< whether a vendor's library had a candidate; filled in by the gate
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

/// A kernel whose run is a function object: what it needs to know is what that has captured.
template <class Run>
std::unique_ptr<Kernel> make_kernel(std::string name, Run run) {
  class FunctionKernel final : public Kernel {
   public:
    FunctionKernel(std::string name, Run run) : Kernel(std::move(name)), run_(std::move(run)) {}
    void run(const Launch& l) const override { run_(l); }

   private:
    Run run_;
  };
  return std::make_unique<FunctionKernel>(std::move(name), std::move(run));
}

/// A kernel around another: it says of itself what that one says, with something before or after its name.
class WrapperKernel : public Kernel {
 protected:
  explicit WrapperKernel(std::unique_ptr<Kernel> inner, const std::string& before = "", const std::string& after = "")
      : Kernel(before + inner->info().name + after), inner_(std::move(inner)) {
    std::string name = std::move(info().name);
    info() = inner_->info();
    info().name = std::move(name);
  }
  const Kernel& inner() const { return *inner_; }

 private:
  std::unique_ptr<Kernel> inner_;
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
    Provider provider;
    std::string algorithm;
    Make make;
    bool deterministic;  // the same bits from run to run, with the same number of threads
  };
  /// `algorithm` names the way within its op ("direct", "winograd_f2x2"); a policy of algorithm "winograd" takes the
  /// whole family (is_of_family). `make` is called when the candidate is tried, and may return null to decline.
  void add(Provider provider, std::string algorithm, Make make, bool deterministic = true) {
    all_.push_back({provider, std::move(algorithm), std::move(make), deterministic});
  }
  /// The same for a kernel of one's own.
  void add(std::string algorithm, Make make, bool deterministic = true) {
    add(Provider::kPlumbline, std::move(algorithm), std::move(make), deterministic);
  }
  const std::vector<Candidate>& all() const { return all_; }

 private:
  std::vector<Candidate> all_;
};

/// Parameters of an op that has none.
struct NoParams {};

}  // namespace plumb
