// A row of the benchmark: one way to do one piece of work, prepared when it is first run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/problems.h"
#include "core/context.h"
#include "core/runtime.h"
#include "core/spec.h"

namespace plumb::bench {

/// Work that is ready to run, and what its row says of it.
struct Work {
  /// On this stream of a device; none on the host. Empty: this way does not take the problem, and the row is left out.
  std::function<void(Runtime::Stream)> run;
  std::string label;  ///< the algorithm and the implementation
  DType dtype = DType::kF32;
  MathMode math = MathMode::kStrict;
  double flops = 0;      ///< by definition; 0 for work that memory bounds
  bool nominal = false;  ///< less arithmetic is done than the definition says (Winograd): no part of the roof
  std::function<double()> error{};  ///< of a Winograd kernel: its distance from f64, once it has run
  size_t read_bytes = 0;            ///< inputs
  size_t written_bytes = 0;         ///< outputs
  bool in_place = false;            ///< what is written are inputs
  int conversions = 0;              ///< of formats in one run, packing of weights included
  size_t held_bytes = 0;            ///< memory that it keeps
  bool judged = true;  ///< by its share of the roof; the copy that is the roof is not, nor is work in the caches
  int turns = 1;       ///< runs after which its buffers come round
  bool can_be_captured = true;  ///< whether a device may replay it: launches alone, always the same
};
using Prepare = std::function<Work()>;

/// A row of this path. `prepare` may throw Error, which fails the run.
void add_row(const std::string& path, Prepare prepare);
/// Registers the rows that a Filter of this text selects, and returns their paths. Those that it does not select are
/// kept from Google Benchmark, whose time for registering grows with the square of their number.
std::vector<std::string> register_rows(const std::string& filter);
/// The work behind a row that was run; null for others.
const Work* facts_of(const std::string& path);
/// Whether a row's way does not take its problem, as was found when it was run.
bool declined(const std::string& path);
/// How many rows were left out, and how many failed.
struct RowCounts {
  int declined = 0, failed = 0;
};
RowCounts row_counts();

/// What rows are made of.
struct Axes {
  Problems problems;
  std::vector<Layout> layouts;
  std::vector<DType> dtypes;
};

/// The parts of a row's path: the device and the mathematics are those of the context.
struct Path {
  std::string op, direction;
  std::string device;
  std::string layout;
  std::string dtype;  ///< "tf32" for f32 in that mode
  std::string problem;
  Path(std::string op, std::string direction, const TensorSpec& x, std::string problem);
  /// "conv2d/forward/cpu/nhwc/f32/measured/vgg16.conv1_1" for the algorithm "measured".
  std::string operator()(std::string_view algorithm) const;
};

/// A file of rows: static RowSource rows(&add_some_rows).
class RowSource {
 public:
  explicit RowSource(void (*add)(const Axes&));
  /// The same with a function of a tensor: it is called for every tensor problem, with its name, in every layout in
  /// which a tensor of its rank can be (all for rank 4, row-major otherwise), of every dtype. Not while rows are of
  /// tf32: these ops have no products.
  explicit RowSource(void (*add)(const TensorSpec& x, const std::string& problem));
  /// Registers all rows of all files.
  static void add_all(const Axes& axes);
};

}  // namespace plumb::bench
