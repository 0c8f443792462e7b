// Observers of what the gate runs: a log, and a check of every kernel with all its candidates.
#pragma once

#include <algorithm>
#include <functional>
#include <set>
#include <string>

#include "dispatch/recorder.h"

namespace plumb::test {

/// Whether the processor has AVX-512, without which oneDNN has no kernels in bf16 and fewer in f32.
bool has_avx512();

/// While it lives, records every kernel that the thread runs as "kind:algorithm".
class KernelLog : public Observer {
 public:
  KernelLog() : scope_(this) {}
  void after(const PreparedKernel& p, const Launch&) override {
    ran.push_back(std::string(p.kind->name) + ":" + p.kernel->info().algorithm);
  }
  bool has(const std::string& name) const { return std::find(ran.begin(), ran.end(), name) != ran.end(); }
  /// How many kernels of a kind ran.
  int64_t count(const std::string& kind) const {
    return std::ranges::count_if(ran, [&](const std::string& name) { return name.starts_with(kind + ":"); });
  }
  std::vector<std::string> ran;

 private:
  ObserverScope scope_;
};

/// While it lives, does `work` after every kernel that the thread runs.
class AfterEveryKernel final : public Observer {
 public:
  using Work = std::function<void(const PreparedKernel&, const Launch&)>;
  explicit AfterEveryKernel(Work work) : work_(std::move(work)), scope_(this) {}
  void after(const PreparedKernel& p, const Launch& l) override { work_(p, l); }

 private:
  Work work_;
  ObserverScope scope_;
};

/// While it lives, checks every kernel that the thread runs, once per key, on the inputs of that run, and reports
/// failures to GoogleTest. Each candidate of the kernel must
///   - be within rounding of the reference in f64: (1 + sqrt(length of its sums)) units of rounding, times `factor`.
///     Every kernel except a packer must have a reference;
///   - not touch what lies around its outputs, workspace and inputs, and give the same results if NaNs lie there;
///   - need no more than 64-byte alignment;
///   - make as many launches on a device as it says, at most as many where a tensor is empty;
///   - give the same bits in each of its runs, if it says so;
///   - be known by its name from the begin.
class KernelCheck : public Observer {
 public:
  /// What is done before each run of a candidate, one run after another: nothing, twice, unless a program of tests says
  /// more. The emulated device runs its threads in another order.
  static std::vector<std::function<void()>>& runs();
  explicit KernelCheck(double factor) : factor_(factor), scope_(this) {}
  void after(const PreparedKernel&, const Launch&) override;
  /// The checked kernels as "kind:algorithm".
  const std::set<std::string>& checked() const { return checked_; }

 private:
  double factor_;
  ObserverScope scope_;
  std::set<std::string> keys_, checked_;
};

/// The error that an algorithm may have, as a multiple of a plain sum's: Winograd's transforms amplify rounding.
double amplification(const std::string& algorithm);

}  // namespace plumb::test
