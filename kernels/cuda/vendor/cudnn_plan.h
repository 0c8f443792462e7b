// From a graph of cuDNN's operations to plans that run: what its heuristics propose, each proposal a candidate.
#pragma once

#include <functional>
#include <mutex>
#include <span>

#include "core/per_thread.h"
#include "dispatch/kernel.h"
#include "kernels/cuda/vendor/cudnn.h"

namespace plumb::cuda {

/// An engine with its settings, as a heuristic proposes it for a graph. One that compiles makes one plan: asked for a
/// second, the library's compiler fails.
struct EngineConfig {
  std::shared_ptr<const Descriptor> config;
  int64_t engine = 0;     ///< the library's number of it
  std::string algorithm;  ///< "cudnn_e38", "cudnn_e38_1" for the same engine again, "cudnn_e1_fallback", or
                          ///< "cudnn_e38_b", a setting of it that only mode B proposes
  std::string notes;      ///< what it says of its numbers and of itself: "tensor_core nondeterministic"
  bool is_deterministic = true;
  bool is_narrow = false;      ///< it computes with fewer bits than f32 has, or leaves fewer
  bool converts_down = false;  ///< it rounds its operands to a type of less range
};

/// Operations that are connected by their tensors.
class Graph {
 public:
  Graph(const Target& target, std::vector<Descriptor> operations);
  /// The configs of heuristic mode A, and then those of FALLBACK, that pass their support checks; by kHeuristicB those
  /// of mode B in the place of A's, and by kFallback the latter first. Where `is_strict`, not those that compute with
  /// fewer bits than f32 has, or leave fewer; nowhere those that round operands to a type of less range.
  std::vector<EngineConfig> configs(bool is_strict, Search search = Search::kHeuristic) const;

 private:
  std::vector<EngineConfig> proposed(cudnnBackendHeurMode_t mode) const;
  const Target& target_;
  std::vector<Descriptor> operations_;
  Descriptor graph_;
};

/// A config that is made ready to run. Any number of threads may run one: it is handed over by one at a time, since
/// cuDNN's plans are not safe to be executed by two at once.
class Plan {
 public:
  /// `ids` are those of the graph's tensors, in the order of the pointers of a run.
  Plan(const Target& target, std::shared_ptr<const Graph> graph, EngineConfig config, std::vector<int64_t> ids);
  /// False if the library could not make it after all.
  bool is_made() const { return is_made_; }
  size_t workspace_bytes() const { return workspace_bytes_; }
  const EngineConfig& config() const { return config_; }
  /// On a device that is only described, everything but the execution itself.
  void run(std::span<void* const> pointers, void* workspace, Runtime::Stream stream) const;

 private:
  // The pointers as the library wants them, kept for the next run, in which they mostly are the same.
  struct Pack {
    Descriptor descriptor{CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR};
    std::vector<void*> pointers;
    void* workspace = nullptr;
    bool is_new = true;
  };
  void point(Pack& p, std::span<void* const> pointers, void* workspace) const;

  const Target& target_;
  std::shared_ptr<const Graph> graph_;  // the config refers to it
  EngineConfig config_;
  std::vector<int64_t> ids_;
  Descriptor plan_;
  bool is_made_ = false;
  size_t workspace_bytes_ = 0;
  detail::PerThread<Pack> packs_;
  mutable std::mutex handing_over_;
};

/// Which pointer of a launch a tensor of a graph is, or that it is the zeros that come with the graph, or a number.
struct Binding {
  enum From { kIn, kOut, kZeros, kValue } from;
  size_t at;
  int64_t id;
  float value;
};
inline Binding in(size_t at, int64_t id) { return {Binding::kIn, at, id, 0}; }
inline Binding out(size_t at, int64_t id) { return {Binding::kOut, at, id, 0}; }
inline Binding value(float v, int64_t id) { return {Binding::kValue, 0, id, v}; }
/// Whether a config is known to compute something else, though it passes its support check.
using IsWrong = std::function<bool(const EngineConfig&)>;
/// One candidate for each config of the graph but those that are wrong, in the order of the heuristics. `zeros` is
/// memory of the device, full of zeros, where a binding needs it.
void offer_plans(const Target& target, std::vector<Descriptor> operations, const std::vector<Binding>& bindings,
                 bool is_strict, Search search, Candidates& candidates, std::shared_ptr<void> zeros = nullptr,
                 const IsWrong& is_wrong = {});

}  // namespace plumb::cuda
