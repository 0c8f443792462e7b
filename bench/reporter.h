// Reporters that give every row its share of the roof.
#pragma once

#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

namespace plumb::bench {

/// Passes everything on to another reporter, with the counter roof_share added and rows that declined left out. Held
/// back until the end where the other can wait (JSON, CSV): only then are the roofs known. On the console rows appear
/// at once, with their share of the roofs as known by then.
class RoofReporter final : public benchmark::BenchmarkReporter {
 public:
  /// `to` must outlive it.
  RoofReporter(benchmark::BenchmarkReporter* to, bool at_end) : to_(to), at_end_(at_end) {}
  bool ReportContext(const Context& context) override;
  void ReportRuns(const std::vector<Run>& runs) override;
  void Finalize() override;
  /// After the rows: throws, naming the file, if it could not be written.
  void check_written(const std::string& file) const;

 private:
  benchmark::BenchmarkReporter* to_;
  bool at_end_;
  int error_ = 0;  // of writing, as in errno
  std::vector<std::vector<Run>> held_;
  std::unique_ptr<Context> context_;
};

/// Says on stderr how many rows declined or failed, and which passed their roof: then the roof is wrong, for instance
/// because others used the machine while it was measured. Returns the exit status of the program: 1 if rows failed,
/// otherwise 3 if a roof is wrong, otherwise 0.
int judge();

}  // namespace plumb::bench
