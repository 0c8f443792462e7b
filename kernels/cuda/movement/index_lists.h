// The places of an index by what they hold: a list for each slice, sorted, so that what is added by it comes in the
// order of the index.
#pragma once

#include "kernels/cuda/launch.h"

namespace plumb::cuda {

using Count = unsigned long long;  // what atomicAdd takes

/// In memory of the device: the list of a slice is places[begin] to places[begin + size).
struct ListsOfSlices {
  const Count *sizes, *begins, *places;
};

/// How the lists are made; decided when the kernel is prepared.
class IndexLists {
 public:
  /// Of n places, which hold numbers of slices. A number that no slice has is reported by the sentence.
  IndexLists(Runtime& r, int64_t slices, int64_t n, uint64_t sentence);
  int launches() const { return is_of_block_ ? 1 : 5; }
  size_t workspace_bytes() const;
  ListsOfSlices launch(const Queue& q, const int64_t* index, void* workspace) const;

 private:
  int64_t slices_, n_;
  Fault* fault_;
  uint64_t sentence_;
  bool is_of_block_ = false;  // whether one block makes them
};

}  // namespace plumb::cuda
