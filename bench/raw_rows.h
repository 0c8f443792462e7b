// The rows beside convolutions and matrix products: the same work by the vendor's library alone.
#pragma once

#include <set>

#include "bench/job.h"
#include "measure/onednn/raw.h"

namespace plumb::bench {

/// Raw work of the host as the work of a row.
Work raw_work(const Job& job, std::unique_ptr<measure::RawRun> raw);

/// The rows of a device: "raw_same", what cuDNN or cuBLASLt proposes first, and "raw_best", the fastest of all that it
/// proposes for any of the jobs. Nondeterministic algorithms are among them.
void add_device_raw_rows(const Path& path, const Job& job, const std::vector<Job>& in_all_layouts);

/// The rows "raw_same" (of the class of algorithm that measuring picks, or where oneDNN has none of it, of "direct", or
/// else of "blocked"), "raw_same_CLASS" for every class among the library's algorithms, and "raw_best".
/// `in_all_layouts`: the same in every layout that a vendor may prefer; only a device looks at it.
template <class Raw>
void add_raw_rows(const Path& path, const Job& job, const Raw& raw, std::vector<Job> in_all_layouts = {}) {
  if (!job.policy.device.is_cpu()) {
    if (in_all_layouts.empty()) in_all_layouts.push_back(job);
    return add_device_raw_rows(path, job, in_all_layouts);
  }
  if (job.in[0].dtype != DType::kF32 && job.in[0].dtype != DType::kBf16) return;
  add_row(path("raw_same"), [=] {
    std::unique_ptr<measure::RawRun> same;
    for (const std::string& kind :
         {measure::raw_class(measured_algorithm(job)), std::string("direct"), std::string("blocked")}) {
      if (!same) same = measure::raw_same(raw, kind);
    }
    return raw_work(job, std::move(same));
  });
  std::set<std::string> classes;
  for (const std::string& name : algorithms_of(job)) classes.insert(measure::raw_class(name));
  for (const std::string& name : classes) {
    add_row(path("raw_same_" + name), [=] { return raw_work(job, measure::raw_same(raw, name)); });
  }
  add_row(path("raw_best"), [=] { return raw_work(job, measure::raw_best(raw)); });
}

}  // namespace plumb::bench
