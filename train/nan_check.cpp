#include "train/nan_check.h"

#include <algorithm>
#include <cmath>

#include "core/block.h"

namespace plumb::training {
namespace {

template <class T>
bool has_nan(const void* data, int64_t n) {
  const auto* p = static_cast<const T*>(data);
  for (int64_t i = 0; i < n; ++i) {
    if (std::isnan(static_cast<double>(static_cast<float>(p[i])))) return true;
  }
  return false;
}

bool holds_nan(const void* data, const TensorSpec& s, Device device) {
  if (!data || is_pack(s.layout) || !is_floating(s.dtype)) return false;
  if (!device.is_cpu()) {
    const detail::Block here = detail::block_of(s.bytes());
    detail::copy_bytes(here.get(), {}, data, device, s.bytes());
    return holds_nan(here.get(), s, {});
  }
  return dispatch_dtype(s.dtype, [&]<class T>() { return has_nan<T>(data, s.numel()); });
}

}  // namespace

// Earlier kernels were checked: a NaN in an input comes from outside, or this kernel wrote it.
void NanCheck::after(const PreparedKernel& p, const Launch& l) {
  const auto check = [&](const char* which, std::span<const TensorSpec> specs, auto pointer) {
    for (size_t i = 0; i < specs.size(); ++i) {
      PLUMB_CHECK(!holds_nan(pointer(i), specs[i], p.policy.device),
                  "{}: {} {} {} holds a NaN; look at its inputs, or lower the learning rate", p.kind->name, which, i,
                  specs[i]);
    }
  };
  const auto& packs = p.kernel->info().packs;
  check("input", p.in(), [&](size_t i) -> const void* {
    const bool is_packed =
        std::ranges::any_of(packs, [&](const PackRequest& r) { return r.input == static_cast<int>(i); });
    return is_packed ? nullptr : l.in[i];  // it was checked when it was packed
  });
  check("output", p.out(), [&](size_t i) { return l.out[i]; });
}

}  // namespace plumb::training
