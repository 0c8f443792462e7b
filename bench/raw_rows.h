// The rows beside convolutions and matrix products: the same work by the vendor's library alone.
#pragma once

#include <set>

#include "bench/job.h"
#include "measure/onednn/raw.h"
#include "ops/random.h"

namespace plumb::bench {

/// One direction of a layer with weights, of the kernel kinds given for its three.
template <class Forward, class BackwardInput, class BackwardWeight>
Job job_of(measure::Direction d, const typename Forward::Params& p, const TensorSpec& x, const TensorSpec& w,
           const TensorSpec& y) {
  switch (d) {
    case measure::Direction::kForward: return job<Forward>(p, {x, w}, {y});
    case measure::Direction::kBackwardInput: return job<BackwardInput>(p, {y, w}, {x});
    case measure::Direction::kBackwardWeight: return job<BackwardWeight>(p, {y, x}, {w});
  }
  return {};
}

/// A call of one direction: forward(x, w), backward_input(dy, w) or backward_weight(dy, x). Weights are marked as
/// written before every call, as an optimizer leaves them: packing is part of a call.
template <class Forward, class BackwardInput, class BackwardWeight>
std::function<void()> eager_call(measure::Direction d, const TensorSpec& x, const TensorSpec& w, const TensorSpec& y,
                                 Forward forward, BackwardInput backward_input, BackwardWeight backward_weight) {
  const auto with_weights = [w = uniform(w, -1, 1, 2)](Tensor first, auto call) -> std::function<void()> {
    return [=] {
      w.value->bump_version();
      call(first, w);
    };
  };
  switch (d) {
    case measure::Direction::kForward: return with_weights(uniform(x, -1, 1, 1), forward);
    case measure::Direction::kBackwardInput: return with_weights(uniform(y, -1, 1, 1), backward_input);
    case measure::Direction::kBackwardWeight:
      return [=, dy = uniform(y, -1, 1, 1), x = uniform(x, -1, 1, 3)] { backward_weight(dy, x); };
  }
  return {};
}

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
