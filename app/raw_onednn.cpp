#include "app/raw_onednn.h"

#include <algorithm>

#include "app/raw_onednn_steps.h"
#include "core/random.h"
#include "core/stopwatch.h"

namespace plumb::app {

const char* to_string(Direction d) {
  switch (d) {
    case Direction::kForward: return "forward";
    case Direction::kBackwardInput: return "backward_input";
    case Direction::kBackwardWeight: return "backward_weight";
  }
  return "";
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

dnnl::engine& engine() {
  static dnnl::engine* e = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *e;
}

memory::data_type dtype(DType t) {
  switch (t) {
    case DType::kF32: return memory::data_type::f32;
    case DType::kBf16: return memory::data_type::bf16;
    case DType::kF16: return memory::data_type::f16;
    default: fail("raw oneDNN: there is nothing for dtype {}; use f32 or bf16", t);
  }
}

memory::desc plain(const TensorSpec& s) {
  const Strides strides = strides_of(s);
  return {memory::dims(s.shape.begin(), s.shape.end()), dtype(s.dtype),
          memory::dims(strides.of, strides.of + s.rank())};
}

memory::desc any(const TensorSpec& s) {
  return {memory::dims(s.shape.begin(), s.shape.end()), dtype(s.dtype), memory::format_tag::any};
}

memory::desc bias(bool with_bias, int64_t channels, DType t, int rank) {
  if (!with_bias) return {};
  memory::dims dims(static_cast<size_t>(rank), 1);
  dims.back() = channels;
  return {dims, dtype(t), memory::dims(dims.size(), 1)};
}

dnnl::primitive_attr attr_of(Activation activation) {
  dnnl::primitive_attr attr;
  if (activation == Activation::kNone) return attr;
  dnnl::post_ops after;
#if DNNL_VERSION_MAJOR >= 3
  after.append_eltwise(dnnl::algorithm::eltwise_relu, 0, 0);
#else
  after.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
#endif
  attr.set_post_ops(after);
  return attr;
}

Steps::Steps(const char* implementation) : stream_(engine()) {
  implementation_ = std::string("onednn:") + implementation;
}

memory Steps::fresh(const memory::desc& d) {
  const size_t bytes = d.get_size();
  void* data = blocks_.emplace_back(detail::block_of(bytes)).get();
#if DNNL_VERSION_MAJOR >= 3
  const bool wide = d.get_data_type() == memory::data_type::f32;
#else
  const bool wide = d.data_type() == memory::data_type::f32;
#endif
  const DType t = wide ? DType::kF32 : DType::kBf16;
  detail::fill_uniform(data, t, static_cast<int64_t>(bytes / size_of(t)), -1, 1, blocks_.size());
  return {d, engine(), data};
}

void Steps::convert(const memory& from, const memory& to) {
  steps_.push_back({dnnl::reorder(from, to), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}, true});
  ++conversions_;
}

memory Steps::operand(const memory::desc& own, const memory::desc& wanted, bool with_conversion) {
  const memory made = fresh(wanted);
  if (own != wanted && with_conversion) convert(fresh(own), made);
  return made;
}

void Steps::add(const dnnl::primitive& p, const std::unordered_map<int, memory>& args) {
  steps_.push_back({p, args, false});
}

void Steps::add_forward(const dnnl::primitive& p, const memory& x, const memory& w, const memory::desc& bias,
                        const memory& y) {
  std::unordered_map<int, memory> args{{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, y}};
  if (bias != memory::desc()) args.emplace(DNNL_ARG_BIAS, fresh(bias));
  add(p, args);
}

void Steps::result(const memory& made, const memory::desc& own, bool with_conversion) {
  if (made.get_desc() != own && with_conversion) convert(made, fresh(own));
}

void Steps::run() {
  for (const Step& s : steps_) s.primitive.execute(stream_, s.args);
  stream_.wait();
}

double Steps::conversion_seconds() {
  return detail::seconds_of([&] {
    for (const Step& s : steps_) {
      if (s.conversion) s.primitive.execute(stream_, s.args);
    }
    stream_.wait();
  });
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
  double best_seconds = 0;
  for (const Make& make : makes) {
    auto made = declining(make);
    if (!made) continue;
    made->run();
    const double seconds = detail::best_seconds_of(5, [&] { made->run(); });
    if (!best || seconds < best_seconds) {
      best = std::move(made);
      best_seconds = seconds;
    }
  }
  return best;
}

}  // namespace raw
}  // namespace plumb::app
