// A kernel of the library as the work of a row.
#pragma once

#include "bench/row.h"
#include "dispatch/kernel_cache.h"
#include "dispatch/trial.h"

namespace plumb::bench {

/// A piece of work for a kernel kind, without the algorithm.
struct Job {
  const detail::KernelKind* kind;
  std::vector<uint64_t> params;
  std::vector<TensorSpec> in, out;
  detail::Values values{};
  size_t updated_bytes = 0;  ///< of the inputs, which are written as well; there are no outputs then
  Policy policy = detail::ctx.policy;
};

template <class K>
Job job(const typename K::Params& params, std::vector<TensorSpec> in, std::vector<TensorSpec> out) {
  Job j{&detail::kind_of<K>, {}, std::move(in), std::move(out)};
  j.params.resize((sizeof params + 7) / 8);
  if constexpr (!std::is_empty_v<typename K::Params>) std::memcpy(j.params.data(), &params, sizeof params);
  return j;
}

/// Work with the job's figures and nothing to run yet.
Work described(const Job& job);
/// The algorithms that the library offers for it, "reference" left out unless it is the only one.
std::vector<std::string> algorithms_of(const Job& job);
/// What "measured" picks for it.
std::string measured_algorithm(const Job& job);
/// The job by the algorithm of this name, or by what measuring picks: of all if it is "measured", of the vendor's
/// library if it is "vendor". Nothing if there is no such kernel. Weights are plain, and
/// packing them is part of a run. Work that memory bounds uses several sets of buffers in turn.
Work kernel_work(const Job& job, const std::string& algorithm);
/// Work on tensors through public ops, with the figures of the job that it amounts to.
Work eager_work(const Job& job, std::function<void()> run);

/// The row "measured"; one for each algorithm, if there are several, and then "vendor", where that has any.
void add_kernel_rows(const Path& path, const Job& job);
/// The row "eager": what `make` returns is run without recording, under the measured policy, warm. `make` makes
/// tensors, and so is called when the row is run.
void add_eager_row(const Path& path, const Job& job, std::function<std::function<void()>()> make);
/// The row "apart": the same, for work of one kernel that is done by an op for each of its parts.
void add_apart_row(const Path& path, const Job& job, std::function<std::function<void()>()> make);
/// For work that memory bounds, the row "copy_floor": of its bytes, nothing else of it is looked at.
void add_floor_row(const Path& path, const Work& work);
/// The rows of work that memory bounds: those of add_kernel_rows, and "copy_floor".
void add_memory_rows(const Path& path, const Job& job);

}  // namespace plumb::bench
