#include "measure/layout_rows.h"

#include <map>

#include "measure/piece_run.h"

namespace plumb::measure {
namespace {

// The rows of one piece in the layouts that have it, to be filled.
using Group = std::vector<LayoutRow*>;

// A layer without weights has the name of its kernel, and may occur several times: its first in one layout goes with
// the first in another.
std::vector<Group> groups_of(std::vector<LayoutRow>& rows) {
  std::map<std::string, size_t> places;
  std::map<std::pair<Layout, std::string>, int> met;
  std::vector<Group> groups;
  for (LayoutRow& r : rows) {
    const std::string name = r.piece.layer + " " + r.piece.direction;
    const std::string key = name + " " + std::to_string(met[{r.layout, name}]++);
    const auto [it, is_new] = places.emplace(key, groups.size());
    if (is_new) groups.emplace_back();
    groups[it->second].push_back(&r);
  }
  return groups;
}

void fill(const Group& group) {
  std::vector<std::unique_ptr<PieceRun>> runs;
  OnednnBest best(group[0]->piece);
  std::vector<std::function<double()>> works;
  for (const LayoutRow* r : group) {
    runs.push_back(std::make_unique<PieceRun>(r->piece));
    works.push_back([&run = *runs.back()] { return run.run(); });
  }
  if (best) works.push_back([&] { return best.run(); });
  for (const auto& run : runs) {
    if (run->converts()) works.push_back([&run = *run] { return run.convert(); });
  }
  const InTurn found = in_turn(works);
  size_t conversions = group.size() + (best ? 1 : 0);
  for (size_t i = 0; i < group.size(); ++i) {
    LayoutRow& r = *group[i];
    r.run = found.works[i];
    if (best) r.best = found.works[group.size()].median;
    if (runs[i]->converts()) r.conversions = found.works[conversions++];
    r.error = runs[i]->error();
    r.rounds = found.rounds, r.repeats = found.repeats;
  }
}

}  // namespace

std::vector<LayoutRow> rows_of(const std::vector<LayoutPieces>& steps,
                               const std::function<void(int64_t done, int64_t total)>& progress) {
  std::vector<LayoutRow> rows;
  for (const LayoutPieces& step : steps) {
    for (const Piece& piece : step.pieces) rows.push_back({.layout = step.layout, .piece = piece});
  }
  const std::vector<Group> groups = groups_of(rows);
  for (size_t i = 0; i < groups.size(); ++i) {
    fill(groups[i]);
    progress(static_cast<int64_t>(i + 1), static_cast<int64_t>(groups.size()));
  }
  return rows;
}

}  // namespace plumb::measure
