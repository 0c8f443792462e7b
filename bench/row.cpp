#include "bench/row.h"

#include <benchmark/benchmark.h>
#include <algorithm>

#include <list>
#include <map>
#include <set>

#include "bench/allocations.h"
#include "bench/flags.h"
#include "dispatch/timing.h"

namespace plumb::bench {
namespace {

struct Ready {
  std::string path;
  Work work;
  std::unique_ptr<detail::Timed> timed;  // null where there is no such work
};

struct State {
  std::list<Ready> ready;  // the most recent first
  std::map<std::string, Work> facts;
  std::set<std::string> declined;
  int failed = 0;
  std::vector<std::function<void(const Axes&)>> sources;
  std::vector<std::pair<std::string, Prepare>> rows;
};
State& global() {
  static State s;
  return s;
}

// Google Benchmark calls a row several times; repetitions in random order come back to it. Work is kept while there is
// room.
Ready& ready(const std::string& path, const Prepare& prepare) {
  constexpr size_t kRoom = size_t{3} << 30;
  auto& all = global().ready;
  for (auto it = all.begin(); it != all.end(); ++it) {
    if (it->path != path) continue;
    all.splice(all.begin(), all, it);
    return all.front();
  }
  Work fresh = prepare();
  size_t held = fresh.held_bytes;
  for (auto it = all.begin(); it != all.end();) {
    held += it->work.held_bytes;
    it = held > kRoom ? all.erase(it) : std::next(it);
  }
  // Each set of buffers is read once beforehand: what one thread has just filled takes up to four times as long.
  const detail::TimedOptions options{
      .warm_up = std::max(2, fresh.turns), .turns = fresh.turns, .can_be_captured = fresh.can_be_captured};
  std::unique_ptr<detail::Timed> timed;
  if (fresh.run) timed = std::make_unique<detail::Timed>(detail::ctx.policy.device, fresh.run, options);
  return all.emplace_front(path, std::move(fresh), std::move(timed));
}

// On a device, where a replay allocates nothing of ours.
double allocations_of_launch(const Work& w) {
  Runtime& runtime = runtime_of(detail::ctx.policy.device);
  const int64_t before = allocation_count();
  w.run(runtime.stream());
  const auto n = static_cast<double>(allocation_count() - before);
  runtime.wait(runtime.stream());
  return n;
}

void time_row(benchmark::State& state, const Ready& r) {
  const Work& w = r.work;
  const bool is_host = detail::ctx.policy.device.is_cpu();
  const double of_launch = is_host ? 0 : allocations_of_launch(w);
  const int times = r.timed->times();
  double all = 0, least = 1e30;
  const int64_t before = allocation_count();
  while (state.KeepRunningBatch(times)) {
    const double seconds = r.timed->seconds();
    if (!is_host) state.SetIterationTime(seconds * times);
    all += seconds * times;
    least = std::min(least, seconds);
  }
  const auto n = static_cast<double>(state.iterations()), mean = all / n;
  const double allocations = is_host ? static_cast<double>(allocation_count() - before) / n : of_launch;
  state.counters["allocations"] = allocations;
  state.counters["conversions"] = w.conversions;
  state.counters["min_us"] = least * 1e6;
  if (w.flops > 0) {
    state.counters["GFLOP/s"] = w.flops / mean / 1e9;
  } else {
    state.counters["GB/s"] = static_cast<double>(w.read_bytes + w.written_bytes) / mean / 1e9;
  }
  if (w.error) state.counters["error_f64"] = w.error();
  state.SetLabel(w.label);
}

void run_row(benchmark::State& state, const std::string& path, const Prepare& prepare) {
  State& g = global();
  try {
    const Ready& r = ready(path, prepare);
    const Work& w = r.work;
    if (!w.run) {
      g.declined.insert(path);
      state.SkipWithError("declined");
      return;
    }
    Work facts = w;
    facts.run = nullptr;
    facts.error = nullptr;
    g.facts.insert_or_assign(path, facts);
    time_row(state, r);
  } catch (const std::exception& e) {
    ++g.failed;
    state.SkipWithError(e.what());
  }
}

}  // namespace

void add_row(const std::string& path, Prepare prepare) { global().rows.emplace_back(path, std::move(prepare)); }

std::vector<std::string> register_rows(const std::string& filter) {
  const Filter wanted(filter);
  std::vector<std::string> selected;
  for (const auto& [path, prepare] : global().rows) {
    if (!wanted.selects(path)) continue;
    selected.push_back(path);
    const auto run = [&row = path, &make = prepare](benchmark::State& state) { run_row(state, row, make); };
    auto* const row = benchmark::RegisterBenchmark(path.c_str(), run)->Unit(benchmark::kMicrosecond);
    if (!detail::ctx.policy.device.is_cpu()) row->UseManualTime();
  }
  return selected;
}

const Work* facts_of(const std::string& path) {
  const auto it = global().facts.find(path);
  return it == global().facts.end() ? nullptr : &it->second;
}

bool declined(const std::string& path) { return global().declined.contains(path); }

RowCounts row_counts() { return {static_cast<int>(global().declined.size()), global().failed}; }

Path::Path(std::string op_, std::string direction_, const TensorSpec& x, std::string problem_)
    : op(std::move(op_)),
      direction(std::move(direction_)),
      device(to_string(detail::ctx.policy.device)),
      layout(to_string(x.layout)),
      dtype(x.dtype == DType::kF32 && detail::ctx.policy.math == MathMode::kTf32 ? "tf32" : to_string(x.dtype)),
      problem(std::move(problem_)) {}

std::string Path::operator()(std::string_view algorithm) const {
  return op + "/" + direction + "/" + device + "/" + layout + "/" + dtype + "/" + std::string(algorithm) + "/" +
         problem;
}

RowSource::RowSource(void (*add)(const Axes&)) { global().sources.emplace_back(add); }

RowSource::RowSource(void (*add)(const TensorSpec&, const std::string&)) {
  global().sources.emplace_back([add](const Axes& axes) {
    if (detail::ctx.policy.math == MathMode::kTf32) return;
    const std::vector<Layout> row_major{Layout::kNchw};
    for (const TensorProblem& p : axes.problems.tensor) {
      for (const Layout layout : p.shape.rank() == 4 ? axes.layouts : row_major) {
        for (const DType t : axes.dtypes) add(TensorSpec(p.shape, t, layout), p.name);
      }
    }
  });
}

void RowSource::add_all(const Axes& axes) {
  for (const auto& add : global().sources) add(axes);
}

}  // namespace plumb::bench
