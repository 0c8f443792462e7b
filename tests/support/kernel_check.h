// Watching what the gate runs: a log, and a check of every kernel with all its candidates.
#pragma once

#include <set>
#include <string>

#include "dispatch/recorder.h"

namespace plumb::test {

/// While it lives, writes down every kernel that the thread runs as "kind:algorithm".
class KernelLog : public Observer {
 public:
  KernelLog() : scope_(this) {}
  void after(const PreparedKernel& p, const Launch&) override {
    ran.push_back(std::string(p.kind->name) + ":" + p.kernel->info().algorithm);
  }
  bool has(const std::string& name) const { return std::find(ran.begin(), ran.end(), name) != ran.end(); }
  std::vector<std::string> ran;

 private:
  ObserverScope scope_;
};

/// While it lives, checks every kernel that the thread runs, once for each key, on the inputs of that run, and reports
/// failures to GoogleTest. Each candidate of the kernel
///   - is within rounding of the reference in f64, which every kernel but a packer must have: (1 + sqrt(length of its
///   sums)) units of rounding, times `factor`;
///   - leaves alone what lies around its outputs, its workspace and its inputs, and gives the same when NaNs lie there;
///   - needs no more than 64-byte alignment;
///   - gives the same bits twice, if it says so.
class KernelCheck : public Observer {
 public:
  explicit KernelCheck(double factor) : factor_(factor), scope_(this) {}
  void after(const PreparedKernel&, const Launch&) override;
  /// The "kind:algorithm" that were checked.
  const std::set<std::string>& checked() const { return checked_; }

 private:
  double factor_;
  ObserverScope scope_;
  std::set<std::string> keys_, checked_;
};

/// What the error of an algorithm may be in multiples of a plain sum's: Winograd's transforms amplify rounding.
double amplification(const std::string& algorithm);

}  // namespace plumb::test
