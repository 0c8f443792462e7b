#include "dispatch/policy.h"

#include <mutex>
#include <string>
#include <vector>

#include "core/error.h"

namespace plumb {
namespace {

// The names of the library's own candidates, known before a kernel of theirs is prepared.
constexpr std::string_view kOwnAlgorithms[] = {"direct",
                                               "direct_chwn",
                                               "direct_krsc",
                                               "winograd_f2x2",
                                               "winograd_f4x4",
                                               "gemm",
                                               "gemm_columns",
                                               "gemm_then_mask",
                                               "gemm_then_sum",
                                               "inner_product",
                                               "matmul",
                                               "skinny_gemm",
                                               "packed_gemm",
                                               "streamed_gemm",
                                               "im2col",
                                               "implicit_gemm",
                                               "amx_direct",
                                               "group_lanes",
                                               "output_lanes",
                                               "loop",
                                               "rows",
                                               "runs",
                                               "lists",
                                               "stream",
                                               "planes",
                                               "whole",
                                               "blocked",
                                               "winograd_blocked",
                                               "transpose",
                                               "depthwise",
                                               "fused",
                                               "whole_channels",
                                               "pieces",
                                               "cells",
                                               "one_pass",
                                               "relu_apart",
                                               "philox",
                                               "repack",
                                               "onednn",
                                               "reference",
                                               "via_f32_direct",
                                               "via_f32_implicit_gemm",
                                               "via_f32_group_lanes",
                                               "via_f32_direct_chwn",
                                               "via_f32_blocked",
                                               "via_f32_winograd_f2x2",
                                               "via_f32_winograd_f4x4",
                                               "via_f32_winograd_blocked",
                                               "via_f32_im2col",
                                               "via_f32_output_lanes",
                                               "via_f32_skinny_gemm",
                                               "via_f32_packed_gemm",
                                               "via_f32_streamed_gemm",
                                               "via_f32_gemm",
                                               "via_f32_gemm_columns",
                                               "via_f32_inner_product",
                                               "via_f32_matmul"};

struct Names {
  std::mutex mutex;
  std::vector<const std::string*> all{new std::string};  // never freed, since callers hold views of the names
  Names() {
    for (const std::string_view own : kOwnAlgorithms) number_of(own);
  }
  uint16_t number_of(std::string_view name) {
    for (size_t i = 1; i < all.size(); ++i) {
      if (*all[i] == name) return static_cast<uint16_t>(i);
    }
    PLUMB_CHECK(all.size() < 65536, "too many names of algorithms");
    all.push_back(new std::string(name));
    return static_cast<uint16_t>(all.size() - 1);
  }
};
Names& names() {
  static Names* n = new Names;
  return *n;
}

}  // namespace

const char* to_string(KernelSet s) { return s == KernelSet::kVendor ? "vendor" : "all"; }

uint16_t register_algorithm(std::string_view name) {
  if (name.empty()) return 0;
  Names& n = names();
  const std::lock_guard lock(n.mutex);
  return n.number_of(name);
}

uint16_t algorithm_id(std::string_view name) {
  if (name.empty()) return 0;
  Names& n = names();
  const std::lock_guard lock(n.mutex);
  std::string known;
  for (size_t i = 1; i < n.all.size(); ++i) {
    if (is_of_family(*n.all[i], name)) return n.number_of(name);
    known += (i == 1 ? "" : ", ") + *n.all[i];
  }
  fail(
      "algorithm \"{}\" is unknown; use one of {}, or the beginning of one before a _, or name your own by "
      "register_algorithm",
      name, known);
}

std::string_view algorithm_name(uint16_t id) {
  Names& n = names();
  const std::lock_guard lock(n.mutex);
  PLUMB_CHECK(id < n.all.size(), "algorithm number {} is unknown; take one from algorithm_id", static_cast<int>(id));
  return *n.all[id];
}

PolicyScope::PolicyScope(Policy c) : old_(detail::ctx.policy) {
  PLUMB_CHECK(c.search <= Search::kFallback && c.kernels <= KernelSet::kVendor && c.math <= MathMode::kBf16,
              "policy: search {}, set of kernels {} or math mode {} is unknown; use one of the enumerators",
              static_cast<int>(c.search), static_cast<int>(c.kernels), static_cast<int>(c.math));
  if (c.algorithm) algorithm_name(c.algorithm);
  set(c);
}

}  // namespace plumb
