#include "kernels/cuda/vendor/cudnn_plan.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <tuple>

#include "core/error.h"

namespace plumb::cuda {
namespace {

template <class Note>
struct Named {
  Note note;
  const char* name;
};
constexpr Named<cudnnBackendNumericalNote_t> kNumerical[] = {
    {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, "tensor_core"},
    {CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, "down_convert"},
    {CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION, "reduced_precision"},
    {CUDNN_NUMERICAL_NOTE_FFT, "fft"},
    {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, "nondeterministic"},
    {CUDNN_NUMERICAL_NOTE_WINOGRAD, "winograd"},
    {CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13, "winograd_13x13"},
};
constexpr Named<cudnnBackendBehaviorNote_t> kBehavior[] = {
    {CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION, "runtime_compiled"},
};

// The names of those notes of an engine that are in the list.
template <class Note, size_t N>
std::vector<std::string> notes_of(const Descriptor& engine, cudnnBackendAttributeName_t name,
                                  cudnnBackendAttributeType_t type, const Named<Note> (&list)[N]) {
  std::array<Note, 64> notes;
  int64_t count = 0;
  if (cudnn().get_attribute(engine.get(), name, type, notes.size(), &count, notes.data()) != CUDNN_STATUS_SUCCESS)
    return {};
  const auto end = notes.begin() + std::min<int64_t>(count, notes.size());
  std::vector<std::string> names;
  for (const auto& n : list) {
    if (std::find(notes.begin(), end, n.note) != end) names.emplace_back(n.name);
  }
  return names;
}

std::vector<std::shared_ptr<Descriptor>> proposals(const Target& target, const Descriptor& graph,
                                                   cudnnBackendHeurMode_t mode) {
  Descriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  if (!target.is_present()) target.tell(heuristic, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
  if (!heuristic.try_finalize()) return {};  // nothing it knows of
  const auto read = [&](int64_t count, int64_t& found, cudnnBackendDescriptor_t* to) {
    const auto status = cudnn().get_attribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                              CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &found, to);
    if (status != CUDNN_STATUS_SUCCESS) found = 0;
  };
  int64_t count = 0;
  read(0, count, nullptr);
  std::vector<std::shared_ptr<Descriptor>> configs;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (int64_t i = 0; i < count; ++i) {
    configs.push_back(std::make_shared<Descriptor>(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    raw.push_back(configs.back()->get());
  }
  read(count, count, raw.data());
  configs.resize(static_cast<size_t>(count));
  return configs;
}

// The engine that a proposal is of.
Descriptor engine_of(const Descriptor& config) {
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t e = engine.get();
  int64_t n = 0;
  check(cudnn().get_attribute(config.get(), CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &e),
        "to name an engine");
  return engine;
}

// The number of an engine and of each choice that it leaves open: "38 2=5 4=1".
std::string settings_of(const EngineConfig& c) {
  std::string text = std::to_string(c.engine);
  int64_t count = 0;
  const auto read = [&](int64_t most, cudnnBackendDescriptor_t* to) {
    return cudnn().get_attribute(c.config->get(), CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                 most, &count, to) == CUDNN_STATUS_SUCCESS;
  };
  if (!read(0, nullptr)) return text;
  std::vector<Descriptor> choices;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (int64_t i = 0; i < count; ++i) raw.push_back(choices.emplace_back(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR).get());
  if (!read(count, raw.data())) return text;
  for (int64_t i = 0; i < count; ++i) {
    cudnnBackendKnobType_t type{};
    int64_t n = 0;
    cudnn().get_attribute(raw[static_cast<size_t>(i)], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &n,
                          &type);
    const int64_t value = choices[static_cast<size_t>(i)].number(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE);
    text += message(" {}={}", static_cast<int>(type), value);
  }
  return text;
}

}  // namespace

Graph::Graph(const Target& target, std::vector<Descriptor> operations)
    : target_(target), operations_(std::move(operations)), graph_(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
  graph_.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations_);
  target.tell_graph(graph_);
  graph_.finalize("a graph of operations");
}

std::vector<EngineConfig> Graph::proposed(cudnnBackendHeurMode_t mode) const {
  std::vector<EngineConfig> all;
  for (auto& config : proposals(target_, graph_, mode)) {
    const Descriptor engine = engine_of(*config);
    EngineConfig c;
    c.engine = engine.number(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
    auto notes = notes_of(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, kNumerical);
    const auto has = [&](const char* note) { return std::find(notes.begin(), notes.end(), note) != notes.end(); };
    c.is_deterministic = !has("nondeterministic");
    // A tile of 13x13 amplifies rounding until three digits are left.
    c.is_narrow = has("tensor_core") || has("reduced_precision") || has("winograd_13x13");
    c.converts_down = has("down_convert");
    for (auto& b : notes_of(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, kBehavior))
      notes.push_back(std::move(b));
    for (const std::string& note : notes) c.notes += (c.notes.empty() ? "" : " ") + note;
    c.config = std::move(config);
    all.push_back(std::move(c));
  }
  return all;
}

std::vector<EngineConfig> Graph::configs(bool is_strict, Search search) const {
  std::map<int64_t, int> times;  // that an engine was proposed so far
  const auto name = [&](std::vector<EngineConfig>& proposed, const char* suffix) {
    for (EngineConfig& c : proposed) {
      c.algorithm = message("cudnn_e{}", c.engine);
      if (const int again = times[c.engine]++) c.algorithm += message("_{}", again);
      c.algorithm += suffix;
    }
  };
  std::vector<EngineConfig> first = proposed(CUDNN_HEUR_MODE_A), fallbacks = proposed(CUDNN_HEUR_MODE_FALLBACK);
  name(first, "");
  name(fallbacks, "_fallback");
  if (search == Search::kHeuristicB) {  // the same settings of an engine have the same name
    std::map<std::string, std::string> names;
    for (const EngineConfig& c : first) names.emplace(settings_of(c), c.algorithm);
    times.clear();
    first = proposed(CUDNN_HEUR_MODE_B);
    name(first, "_b");
    for (EngineConfig& c : first) {
      if (const auto known = names.find(settings_of(c)); known != names.end()) c.algorithm = known->second;
    }
  }
  auto [front, back] = search == Search::kFallback ? std::tie(fallbacks, first) : std::tie(first, fallbacks);
  std::ranges::move(back, std::back_inserter(front));
  std::erase_if(front, [&](const EngineConfig& c) { return c.converts_down || (is_strict && c.is_narrow); });
  return std::move(front);
}

Plan::Plan(const Target& target, std::shared_ptr<const Graph> graph, EngineConfig config, std::vector<int64_t> ids)
    : target_(target),
      graph_(std::move(graph)),
      config_(std::move(config)),
      ids_(std::move(ids)),
      plan_(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
  plan_.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, *config_.config);
  target.tell(plan_, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
  is_made_ = plan_.try_finalize();
  if (is_made_) {
    workspace_bytes_ =
        static_cast<size_t>(std::max<int64_t>(0, plan_.number(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)));
  }
}

void Plan::run(std::span<void* const> pointers, void* workspace, Runtime::Stream stream) const {
  Pack& p = packs_.get([] { return std::make_unique<Pack>(); });
  if (p.is_new || p.workspace != workspace || !std::equal(pointers.begin(), pointers.end(), p.pointers.begin()))
    point(p, pointers, workspace);
  if (!target_.is_present()) return;
  const std::lock_guard one(handing_over_);
  target_.execute(plan_, p.descriptor, stream);
}

// A pack that is finalized takes no other pointers; made anew in the same memory, it allocates nothing.
void Plan::point(Pack& p, std::span<void* const> pointers, void* workspace) const {
  if (!p.is_new) check(cudnn().initialize(p.descriptor.get()), "to point a plan elsewhere");
  p.is_new = true;  // until it is whole
  p.pointers.assign(pointers.begin(), pointers.end());
  p.workspace = workspace;
  const auto count = static_cast<int64_t>(ids_.size());
  p.descriptor.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids_.data());
  p.descriptor.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, p.pointers.data());
  p.descriptor.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &p.workspace);
  p.descriptor.finalize("the pointers of a plan");
  p.is_new = false;
}

namespace {

constexpr size_t kMost = 16;  // tensors of a graph

std::unique_ptr<Kernel> kernel_of(const std::shared_ptr<const Plan>& plan, const std::vector<Binding>& bindings,
                                  const std::shared_ptr<void>& zeros) {
  const auto run = [plan, bindings, zeros](const Launch& l) {
    std::array<void*, kMost> pointers;
    for (size_t i = 0; i < bindings.size(); ++i) {
      const Binding& b = bindings[i];
      pointers[i] = b.from == Binding::kIn      ? l.in[b.at]
                    : b.from == Binding::kOut   ? l.out[b.at]
                    : b.from == Binding::kZeros ? zeros.get()
                                                : const_cast<float*>(&b.value);
    }
    plan->run({pointers.data(), bindings.size()}, l.workspace, l.stream);
  };
  auto kernel = make_kernel("cudnn:" + plan->config().algorithm.substr(sizeof("cudnn_") - 1), run);
  kernel->info().workspace_bytes = plan->workspace_bytes();
  kernel->info().notes = plan->config().notes;
  kernel->info().launches = 1;
  return kernel;
}

}  // namespace

void offer_plans(const Target& target, std::vector<Descriptor> operations, const std::vector<Binding>& bindings,
                 bool is_strict, Search search, Candidates& candidates, std::shared_ptr<void> zeros,
                 const IsWrong& is_wrong) {
  PLUMB_CHECK(bindings.size() <= kMost, "cuDNN: a graph has {} tensors; {} at most", bindings.size(), kMost);
  const auto graph = std::make_shared<const Graph>(target, std::move(operations));
  std::vector<int64_t> ids;
  for (const Binding& b : bindings) ids.push_back(b.id);
  std::vector<EngineConfig> configs = graph->configs(is_strict, search);
  if (is_wrong) std::erase_if(configs, is_wrong);
  for (const EngineConfig& config : configs) {
    candidates.add(
        Provider::kCudnn, config.algorithm,
        [&target, graph, config, ids, bindings, zeros]() -> std::unique_ptr<Kernel> {
          const auto plan = std::make_shared<const Plan>(target, graph, config, ids);
          return plan->is_made() ? kernel_of(plan, bindings, zeros) : nullptr;
        },
        config.is_deterministic, config.notes.find("runtime_compiled") != std::string::npos);
  }
}

}  // namespace plumb::cuda
