// Which kernels a prepared job runs.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "core/stopwatch.h"
#include "dispatch/recorder.h"

namespace plumb::compare {

/// Sums the kernels that run while it observes, by what they are.
class KernelsSeen final : public Observer {
 public:
  void before(const PreparedKernel&) override { watch_ = detail::Stopwatch(); }
  void after(const PreparedKernel& p, const Launch&) override;
  /// An object for each, with "op", "provider", "algorithm", "calls", "seconds" and more.
  nlohmann::json list() const;

 private:
  detail::Stopwatch watch_;
  std::map<std::string, nlohmann::json> all_;
};

/// Throws unless one of these kernels is of the algorithm that was named, or of its family; "" names none.
void check_ran(const std::string& algorithm, const nlohmann::json& kernels);

}  // namespace plumb::compare
