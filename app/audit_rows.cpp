#include "app/audit_rows.h"

#include <fmt/core.h>

#include <algorithm>

namespace plumb::app {
namespace {

// Whether both do the same work: of convolutions of the same images by the same filters strides may differ, of
// normalisations what is added.
bool are_alike(const PlannedKernel& a, const PlannedKernel& b) {
  return a.kind == b.kind && a.in == b.in && a.output == b.output && a.parameters == b.parameters;
}

}  // namespace

std::vector<AuditRow> rows_of(std::span<const PlannedStep> steps) {
  std::vector<AuditRow> rows;
  for (size_t i = 0; i < steps.size(); ++i) {
    size_t place = 0;
    for (const PlannedKernel& k : steps[i].kernels) {
      const size_t own_place = place++;
      auto row = std::ranges::find_if(rows, [&](const AuditRow& r) { return are_alike(k, r.by[0]); });
      if (row == rows.end()) {
        if (i > 0 || !k.is_offered_by_vendor || k.notes.find("only_a_device_tells") != std::string::npos) continue;
        row = rows.insert(rows.end(), {own_place, {k}, 0});
      }
      if (row->by[i].kind.empty()) row->by[i] = k;
    }
  }
  return rows;
}

std::string shapes_of(const AuditRow& row, const std::vector<AuditRow>& rows) {
  const PlannedKernel& k = row.by[0];
  std::string text = k.shapes;
  bool has_same_shapes = false, has_same_output = false;
  for (const AuditRow& r : rows) {
    const PlannedKernel& other = r.by[0];
    if (&r == &row || other.kind != k.kind || other.shapes != k.shapes) continue;
    has_same_shapes = true;
    has_same_output = has_same_output || other.output == k.output;
  }
  if (has_same_shapes) text += " to " + k.output;
  if (has_same_output) text += fmt::format(", {} inputs", k.in.size());
  return text;
}

std::string engine_of(const std::string& algorithm) {
  constexpr std::string_view kEngine = "cudnn_e";
  return algorithm.starts_with(kEngine) ? algorithm.substr(0, algorithm.find('_', kEngine.size())) : algorithm;
}

}  // namespace plumb::app
