#include "bench/compare/plumbline/kernels_seen.h"

#include <algorithm>
#include <set>

#include "core/error.h"
#include "dispatch/machine.h"
#include "dispatch/policy.h"

namespace plumb::compare {

using nlohmann::json;

void KernelsSeen::after(const PreparedKernel& p, const Launch&) {
  const double s = watch_.seconds();
  const KernelInfo& info = p.kernel->info();
  const std::string key = std::string(p.kind->name) + "|" + to_string(info.provider) + "|" + info.algorithm;
  json& k = all_[key];
  if (k.is_null()) {
    k = {{"op", p.kind->name},
         {"provider", to_string(info.provider)},
         {"algorithm", info.algorithm},
         {"implementation", info.name},
         {"calls", 0},
         {"seconds", 0.0},
         {"conversions", 0},
         {"flops", 0.0},
         {"bytes", 0.0},
         {"workspace_bytes", 0}};
  }
  k["calls"] = k["calls"].get<int>() + 1;
  k["seconds"] = k["seconds"].get<double>() + s;
  k["conversions"] = k["conversions"].get<int>() + info.conversions;
  k["flops"] = k["flops"].get<double>() + info.flops;
  k["bytes"] = k["bytes"].get<double>() + info.bytes;
  k["workspace_bytes"] = std::max(k["workspace_bytes"].get<size_t>(), info.workspace_bytes);
}

json KernelsSeen::list() const {
  json list = json::array();
  for (const auto& [key, kernel] : all_) list.push_back(kernel);
  return list;
}

void check_ran(const std::string& algorithm, const json& kernels) {
  const auto is_it = [&](const json& k) { return is_of_family(k["algorithm"].get<std::string>(), algorithm); };
  if (algorithm.empty() || std::ranges::any_of(kernels, is_it)) return;
  std::set<std::string> others;
  for (const json& k : kernels) others.insert(k["algorithm"].get<std::string>());
  std::string ran;
  for (const std::string& name : others) ran += (ran.empty() ? "" : ", ") + name;
  fail("there is no algorithm {} for this work; {} ran in its place", algorithm, ran);
}

}  // namespace plumb::compare
