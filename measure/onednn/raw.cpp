#include "measure/onednn/raw.h"

#include "core/random.h"
#include "dispatch/timing.h"
#include "kernels/cpu/onednn/primitives.h"
#include "measure/onednn/steps.h"

namespace plumb::measure {

const char* to_string(Direction d) {
  constexpr const char* kNames[] = {"forward", "backward_input", "backward_weight"};
  return kNames[static_cast<size_t>(d)];
}

std::string raw_class(std::string_view algorithm) {
  if (algorithm.starts_with("winograd")) return "winograd";
  if (algorithm.starts_with("gemm")) return "gemm";
  if (algorithm == "direct_chwn" || algorithm == "im2col" || algorithm.starts_with("skinny_gemm") ||
      algorithm == "reference" || algorithm.starts_with("via_f32")) {
    return "blocked";
  }
  return std::string(algorithm);
}

namespace raw {

memory::desc bias(bool with_bias, int64_t channels, DType t, int rank) {
  if (!with_bias) return {};
  memory::dims dims(static_cast<size_t>(rank), 1);
  dims.back() = channels;
  return {dims, cpu::dnnl_dtype(t), memory::dims(dims.size(), 1)};
}

dnnl::primitive_attr attr_of(Activation activation) {
  dnnl::primitive_attr attr;
  if (activation == Activation::kNone) return attr;
  attr.set_post_ops(cpu::relu_after());
  return attr;
}

Steps::Steps(const char* implementation) : stream_(cpu::dnnl_engine()) {
  implementation_ = std::string("onednn:") + implementation;
}

memory Steps::fresh(const memory::desc& d) {
  const size_t bytes = d.get_size();
  void* data = blocks_.emplace_back(detail::block_of(bytes)).get();
  const DType t = cpu::is_f32(d) ? DType::kF32 : DType::kBf16;
  detail::fill_uniform(data, t, static_cast<int64_t>(bytes / size_of(t)), -1, 1, blocks_.size());
  return {d, cpu::dnnl_engine(), data};
}

void Steps::add_conversion(const memory& from, const memory& to) {
  steps_.push_back({dnnl::reorder(from, to), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}, true});
  ++conversions_;
}

void Steps::add(const dnnl::primitive& p, const std::vector<Operand>& in, const memory::desc& bias, const Operand& out,
                bool convert) {
  std::unordered_map<int, memory> args;
  inputs_.clear();
  for (const Operand& o : in) {
    const memory taken = args[o.name] = fresh(o.wanted);
    inputs_.push_back({taken, o.own});
    if (convert && o.own != o.wanted) add_conversion(fresh(o.own), taken);
  }
  if (bias != memory::desc()) args[DNNL_ARG_BIAS] = fresh(bias);
  const memory made = args[out.name] = fresh(out.wanted);
  result_ = {made, out.own};
  steps_.push_back({p, args, false});
  if (convert && out.own != out.wanted) add_conversion(made, fresh(out.own));
}

void Steps::run() {
  for (const Step& s : steps_) s.primitive.execute(stream_, s.args);
  stream_.wait();
}

void Steps::convert() {
  for (const Step& s : steps_) {
    if (s.is_conversion) s.primitive.execute(stream_, s.args);
  }
  stream_.wait();
}

std::unique_ptr<RawRun> declining(const Make& make) {
  try {
    auto made = make();
    return made && !made->implementation().starts_with("onednn:ref") ? std::move(made) : nullptr;
  } catch (const dnnl::error&) {
    return nullptr;
  }
}

std::unique_ptr<RawRun> fastest(const std::vector<Make>& makes) {
  std::unique_ptr<RawRun> best;
  double least = 0;
  for (const Make& make : makes) {
    auto made = declining(make);
    if (!made) continue;
    const double seconds = detail::least_seconds(Device(), [&](Runtime::Stream) { made->run(); }, {{5}});
    if (best && seconds >= least) continue;
    best = std::move(made);
    least = seconds;
  }
  return best;
}

}  // namespace raw
}  // namespace plumb::measure
