#include "bench/raw_rows.h"

namespace plumb::bench {

Work raw_work(const Job& job, std::unique_ptr<app::RawRun> raw) {
  if (!raw) return {};
  const std::shared_ptr<app::RawRun> shared = std::move(raw);
  Work w = described(job);
  w.label = shared->implementation();
  w.nominal = w.label.find("wino") != std::string::npos;
  w.conversions = shared->conversions();
  w.held_bytes = 2 * (w.read_bytes + w.written_bytes);
  w.run = [shared] { shared->run(); };
  return w;
}

}  // namespace plumb::bench
