#include "bench/reporter.h"

#include <cstdio>
#include <map>
#include <utility>

#include "bench/flags.h"
#include "bench/roof_book.h"

namespace plumb::bench {
namespace {

// The best rate of every row that has a share: what is judged in the end.
std::map<std::string, double>& rates() {
  static std::map<std::string, double> r;
  return r;
}

const benchmark::Counter* rate_of(const benchmark::BenchmarkReporter::Run& run) {
  for (const char* name : {"GFLOP/s", "GB/s"}) {
    if (const auto it = run.counters.find(name); it != run.counters.end()) return &it->second;
  }
  return nullptr;
}

void add_share(benchmark::BenchmarkReporter::Run& run) {
  const Work* w = facts_of(run.run_name.function_name);
  const benchmark::Counter* rate = rate_of(run);
  if (!w || !rate || run.aggregate_unit == benchmark::kPercentage) return;
  run.counters["roof_share"] = rate->value / roof_of(*w);
}

// Once: the context is the process's, and the display and the file have a reporter each.
void add_roofs_to_context() {
  static bool added = false;
  if (std::exchange(added, true)) return;
  for (const auto& [name, value] : roof_summary()) benchmark::AddCustomContext(name, std::to_string(value));
}

}  // namespace

bool RoofReporter::ReportContext(const Context& context) {
  if (!at_end_) {
    to_->SetOutputStream(&GetOutputStream());
    to_->SetErrorStream(&GetErrorStream());
    return to_->ReportContext(context);
  }
  context_ = std::make_unique<Context>(context);
  return true;
}

void RoofReporter::ReportRuns(const std::vector<Run>& runs) {
  std::vector<Run> kept;
  for (const Run& run : runs) {
    if (declined(run.run_name.function_name)) continue;
    kept.push_back(run);
    kept.back().run_name.time_type.clear();  // "manual_time" of all on a device: a row is named by its path
    const Work* w = facts_of(run.run_name.function_name);
    const benchmark::Counter* rate = rate_of(run);
    if (!w || !rate || run.run_type != Run::RT_Iteration) continue;
    note_rate(*w, rate->value);
    if (w->judged) {
      double& best = rates()[run.run_name.function_name];
      best = std::max(best, rate->value);
    }
  }
  if (kept.empty()) return;
  if (at_end_) {
    held_.push_back(std::move(kept));
    return;
  }
  for (Run& run : kept) add_share(run);
  to_->ReportRuns(kept);
}

void RoofReporter::Finalize() {
  if (at_end_) {
    to_->SetOutputStream(&GetOutputStream());
    to_->SetErrorStream(&GetErrorStream());
    if (!held_.empty()) add_roofs_to_context();
    to_->ReportContext(*context_);
    for (auto& runs : held_) {
      for (Run& run : runs) add_share(run);
      to_->ReportRuns(runs);
    }
  }
  to_->Finalize();
  error_ = error_of_flush(GetOutputStream());
}

void RoofReporter::check_written(const std::string& file) const { check_flushed(file, error_); }

int judge() {
  const RowCounts counts = row_counts();
  int status = 0;
  if (counts.declined)
    std::fprintf(stderr, "%d rows left out: the library has no such kernel for them\n", counts.declined);
  if (counts.failed) {
    std::fprintf(stderr, "%d rows failed\n", counts.failed);
    status = 1;
  }
  constexpr double kTooShort = 20e-6;  // seconds; below, a share says more about the clock than about the work
  for (const auto& [path, rate] : rates()) {
    const Work& w = *facts_of(path);
    const double amount = w.flops > 0 ? w.flops : static_cast<double>(w.read_bytes + w.written_bytes);
    if (w.nominal || amount / rate / 1e9 < kTooShort || rate <= roof_of(w)) continue;
    std::fprintf(stderr, "%s: %.4g a second is above the roof of %.4g: the roof is wrong\n", path.c_str(), rate,
                 roof_of(w));
    if (status == 0) status = 3;
  }
  return status;
}

}  // namespace plumb::bench
