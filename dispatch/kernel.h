// A kernel: one piece of work, prepared for fixed specs on one target, then run any number of times on pointers.
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

/// The pointers of one run. The kernel writes the inputs that the op names in Writes.
struct Launch {
  void* const* in;
  void* const* out;
  void* workspace;
  void* stream = nullptr;  ///< the device's stream on which to run
};

/// An input that a kernel wants in its own format. The gate keeps the pack on the value and renews it after writes.
struct PackRequest {
  int input;
  Layout layout;
};

/// Whose code does a kernel's main work, even if our own surrounds it (a conversion, a ReLU after a convolution).
enum class Provider : uint8_t { kPlumbline, kOneDnn, kCudnn, kCublasLt, kReference };
/// "plumbline", "onednn", "cudnn", "cublaslt", "reference".
const char* to_string(Provider p);
/// Whether it is a processor or GPU vendor's library: the plumb line itself (KernelSet::kVendor).
inline bool is_vendor(Provider p) {
  return p == Provider::kOneDnn || p == Provider::kCudnn || p == Provider::kCublasLt;
}

/// What a prepared kernel reports about itself. Every benchmark row and profile includes it, so that one sees what ran.
struct KernelInfo {
  std::string name;                          ///< the implementation, "onednn:brgconv:avx512_core"
  std::string algorithm;                     ///< its candidate name, "direct", "winograd_f4x4"; filled in by the gate
  Provider provider = Provider::kPlumbline;  ///< filled in by the gate, from the candidate
  std::string passed_over;  ///< the candidate that comes earlier in its author's order but is not deterministic
  size_t passed_over_workspace_bytes = 0;
  bool is_offered_by_vendor = false;  ///< whether a vendor's library had a candidate; filled in by the gate
  std::string notes;                  ///< what the vendor's library says of the kernel: "tensor_core nondeterministic"
  size_t workspace_bytes = 0;         ///< how large Launch::workspace must be
  int conversions = 0;                ///< layout conversions inside one run
  int launches = 0;                   ///< kernel launches of one run on a device
  double flops = 0;                   ///< arithmetic by the op's definition, 2 per multiply-add; filled in by the gate
  double bytes = 0;                   ///< bytes that must move: the kernel sets those of inputs that it writes; the
                                      ///< gate adds those of reading every input and writing every output once
  std::vector<PackRequest> packs;
};

/// Work prepared for fixed specs on one target: all that these determine is decided when the kernel is made. The gate
/// keeps it for any number of runs.
class Kernel {
 public:
  virtual ~Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  /// Never allocates or synchronises. Several threads may run one kernel at the same time.
  virtual void run(const Launch&) const = 0;
  const KernelInfo& info() const { return info_; }
  KernelInfo& info() { return info_; }

 protected:
  explicit Kernel(std::string name) { info_.name = std::move(name); }

 private:
  KernelInfo info_;
};

/// A kernel whose run is a function object; the object's captures hold what it needs.
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

/// A kernel that wraps another: run(inner, launch) is a function object as of make_kernel. Its info is the inner
/// kernel's, with something added before and after the name.
template <class Run>
std::unique_ptr<Kernel> wrap_kernel(std::unique_ptr<Kernel> inner, const std::string& before, const std::string& after,
                                    Run run) {
  KernelInfo info = inner->info();
  info.name = before + info.name + after;
  auto kernel = make_kernel("", [kept = std::move(inner), run = std::move(run)](const Launch& l) { run(*kept, l); });
  kernel->info() = std::move(info);
  return kernel;
}

/// The work to prepare a kernel for. `Params` are the op's attributes as plain bytes.
template <class Params>
struct Problem {
  const Params& params;
  std::span<const TensorSpec> in, out;
  int threads;
  MathMode math;
  Device device{};
  Search search{};  // for vendors whose libraries have an order of their own for each
};

/// A backend's candidates for one piece of work, in the order in which their author would try them.
class Candidates {
 public:
  using Make = std::function<std::unique_ptr<Kernel>()>;
  struct Candidate {
    Provider provider;
    std::string algorithm;
    Make make;
    bool deterministic;  // the same bits in every run, for a fixed number of threads
    bool compiles;       // takes up to a second to be made, of machine code: several threads may, each of it once
  };
  /// `algorithm` names the candidate within its op ("direct", "winograd_f2x2"); a policy of algorithm "winograd" takes
  /// the whole family (is_of_family). `make` is called when the candidate is tried, and may return null to decline.
  void add(Provider provider, std::string algorithm, Make make, bool deterministic = true, bool compiles = false) {
    all_.push_back({provider, std::move(algorithm), std::move(make), deterministic, compiles});
  }
  /// The same for one of Plumbline's own kernels.
  void add(std::string algorithm, Make make, bool deterministic = true) {
    add(Provider::kPlumbline, std::move(algorithm), std::move(make), deterministic);
  }
  using Change = std::function<std::unique_ptr<Kernel>(std::unique_ptr<Kernel>)>;
  /// What `others` has, under names with `suffix`, each kernel changed once it is made.
  void add_changed(const Candidates& others, const std::string& suffix, const Change& change) {
    for (Candidate c : others.all_) {
      c.algorithm += suffix;
      c.make = [make = std::move(c.make), change]() -> std::unique_ptr<Kernel> {
        auto kernel = make();
        return kernel ? change(std::move(kernel)) : nullptr;
      };
      all_.push_back(std::move(c));
    }
  }
  const std::vector<Candidate>& all() const { return all_; }

 private:
  std::vector<Candidate> all_;
};

/// Parameters of an op without parameters.
struct NoParams {};

}  // namespace plumb
