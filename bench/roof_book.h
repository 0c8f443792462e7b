// The roofs of the rows: what the machine can do, and faster rows that were seen.
#pragma once

#include "bench/row.h"

namespace plumb::bench {

/// The rate, in GFLOP/s or GB/s, that no row of this kind can pass. For arithmetic: the best of oneDNN's matmul, a
/// plain loop of multiply-adds and every row noted; for memory: the copy floor of the same bytes. Measured when first
/// asked for.
double roof_of(const Work& w);
/// A row ran at this rate. Raises the roof of arithmetic, unless the row's flops are nominal; where a floor of memory
/// was passed, it is measured again.
void note_rate(const Work& w, double rate);
/// The roofs of arithmetic and of a large copy, as names and numbers.
std::vector<std::pair<std::string, double>> roof_summary();

}  // namespace plumb::bench
