// The cache of prepared kernels, keyed by plain bytes: kind, parameters, specs and policy.
//
// A kind is a struct that declares, for each backend it has, how to prepare it:
//
//   struct Conv2dForward {
//     static constexpr char kName[] = "conv2d_forward";
//     using Params = Conv2dParams;
//     static void reference(const Problem<Params>&, Candidates&);  // kernels/reference/conv2d/conv2d.cpp
//     static void cpu(const Problem<Params>&, Candidates&);        // kernels/cpu/conv2d/conv2d.cpp
//     PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);  // kernels/cuda/conv2d/
//     static double flops(const Problem<Params>&);                 // optional; 0 without it
//     static constexpr bool kTunesAlike = true;  // optional: the parameters' values do not decide what is fastest
//     static constexpr unsigned kUnread = 0b10;  // optional, by bits: the inputs that are given for their specs alone
//   };
//
// A backend that is not declared is not there, and asking for it is a sentence at prepare time. The reference backend
// is the last candidate on the host.
#pragma once

#include <functional>
#include <initializer_list>

#include "../core/ref.h"
#include "kernel.h"

namespace plumb {

namespace detail {

/// The type-erased side of a kind.
struct KernelKind {
  using Specs = std::span<const TensorSpec>;
  const char* name;
  size_t param_words;
  void (*offer)(const void* params, Specs in, Specs out, const Policy&, int threads, Candidates&);
  double (*flops)(const void* params, Specs in, Specs out);
  bool tunes_alike;  // what was measured with other parameters holds
  unsigned unread;   // bit k: input k is given for its spec alone
};

/// The bytes of the inputs that kernels of a kind read.
size_t read_bytes(const KernelKind& kind, KernelKind::Specs in);

template <class K>
constexpr size_t words_of_params() {
  static_assert(is_plain_bytes<typename K::Params>, "parameters must be plain bytes without padding");
  return std::is_empty_v<typename K::Params> ? 0 : sizeof(typename K::Params) / 8;
}

template <class K>
Problem<typename K::Params> problem_of(const void* params, KernelKind::Specs in, KernelKind::Specs out,
                                       const Policy& policy, int threads) {
  return {*static_cast<const typename K::Params*>(params), in, out, threads, policy.math, policy.device, policy.search};
}

/// Whether a weakly referenced function (PLUMB_IN_CUDA) is linked in.
template <class F>
bool is_linked(F* function) {
  return function != nullptr;
}

template <class K>
void offer(const void* params, KernelKind::Specs in, KernelKind::Specs out, const Policy& policy, int threads,
           Candidates& candidates) {
  const auto problem = problem_of<K>(params, in, out, policy, threads);
  if constexpr (requires { K::flops(problem); }) {
    PLUMB_CHECK(policy.math != MathMode::kTf32 || in.empty() || in[0].dtype != DType::kF32 ||
                    (!policy.device.is_cpu() && runtime_of(policy.device).properties().is_gpu()),
                "{}: {} has no arithmetic in tf32; ask for MathMode::kStrict or kBf16", K::kName, policy.device);
  }
  if (!policy.device.is_cpu()) {
    if constexpr (requires { K::cuda(problem, candidates); }) {
      void (*const cuda)(const Problem<typename K::Params>&, Candidates&) = &K::cuda;
      if (has_cuda_kernels() && is_linked(cuda)) return cuda(problem, candidates);
    }
    fail("{}: there is no kernel for {} in this program; bring the tensors to the cpu", K::kName, policy.device);
  }
  if constexpr (requires { K::cpu(problem, candidates); }) K::cpu(problem, candidates);
  if constexpr (requires { K::reference(problem, candidates); }) K::reference(problem, candidates);
}

template <class K>
double flops(const void* params, KernelKind::Specs in, KernelKind::Specs out) {
  if constexpr (requires(const Problem<typename K::Params>& p) { K::flops(p); }) {
    return K::flops(problem_of<K>(params, in, out, Policy{}, 1));
  } else {
    return 0;
  }
}

template <class K>
inline constexpr bool tunes_alike = requires {
  K::kTunesAlike;
};

template <class K>
constexpr unsigned unread() {
  if constexpr (requires { K::kUnread; }) return K::kUnread;
  return 0;
}

template <class K>
inline constexpr KernelKind kind_of = {K::kName,  words_of_params<K>(), &offer<K>,
                                       &flops<K>, tunes_alike<K>,       unread<K>()};

}  // namespace detail

/// A prepared kernel with its key. All threads share it; it lives as long as the cache, a program or a caller holds it.
class PreparedKernel {
 public:
  std::atomic<uint32_t> refs{1};
  const detail::KernelKind* kind = nullptr;
  std::unique_ptr<Kernel> kernel;
  std::span<const TensorSpec> in() const { return {specs.data(), n_in}; }
  std::span<const TensorSpec> out() const { return {specs.data() + n_in, specs.size() - n_in}; }
  static void destroy(PreparedKernel* p) { delete p; }

  uint64_t hash = 0;
  Policy policy{};
  uint32_t n_in = 0;
  std::vector<uint64_t> params;
  std::vector<TensorSpec> specs;
  std::atomic<uint64_t> last_used{0};
};

namespace detail {
class Value;
/// A borrowed input: a list of them touches no reference counts.
struct In {
  Value* value;
};
using Inputs = std::span<const In>;

/// The prepared kernel for these inputs and outputs under the thread's policy; prepares it if it is not in the cache.
/// The pointer is valid until the calling thread looks up another kernel.
PreparedKernel* find_kernel(const KernelKind& kind, const void* params, Inputs in, std::span<const TensorSpec> out,
                            Device device);
Ref<PreparedKernel> prepare_kernel(const KernelKind& kind, const void* params, std::span<const TensorSpec> in,
                                   std::span<const TensorSpec> out);
}  // namespace detail

/// The prepared kernel of kind K for these specs under the thread's policy; prepares it if it is not in the cache.
template <class K>
detail::Ref<PreparedKernel> prepare(const typename K::Params& params, std::initializer_list<TensorSpec> in,
                                    std::initializer_list<TensorSpec> out) {
  return detail::prepare_kernel(detail::kind_of<K>, &params, {in.begin(), in.size()}, {out.begin(), out.size()});
}

/// How many kernels are prepared now, and how many this process has prepared in all.
struct CacheStats {
  int64_t kernels = 0, prepared = 0;
};
/// Those of this process, over all threads and policies.
CacheStats cache_stats();
/// The number of lookups that the calling thread has made; replaying a captured step makes none.
uint64_t cache_lookups();
/// Sets the largest number of kernels kept; the least recently used are evicted first.
void set_cache_capacity(int64_t kernels);
/// Limits the workspace of kernels prepared from now on. Candidates that need more are passed over; preparing throws if
/// none is left. By default, or after set_workspace_limit of the largest size_t, the limit on a GPU is an eighth of its
/// memory, and there is none elsewhere.
void set_workspace_limit(size_t bytes);
/// The limit that holds on a device.
size_t workspace_limit(Device device);

}  // namespace plumb
