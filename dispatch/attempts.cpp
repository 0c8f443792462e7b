#include "dispatch/attempts.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>

namespace plumb::detail {

std::vector<Attempt> make_all(const std::vector<const Candidates::Candidate*>& wanted) {
  std::vector<Attempt> made(wanted.size());
  const auto make = [&](size_t i) {
    try {
      made[i].kernel = wanted[i]->make();
    } catch (...) {
      made[i].error = std::current_exception();
    }
  };
  std::vector<size_t> compiling;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i]->compiles) compiling.push_back(i);
  }
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t k; (k = next++) < compiling.size();) make(compiling[k]);
  };
  {
    std::vector<std::jthread> others;
    constexpr unsigned kMost = 16;  // a compiler takes hundreds of MB
    const size_t most = std::min<size_t>(compiling.size(), std::min(kMost, std::thread::hardware_concurrency()));
    try {
      for (size_t i = 1; i < most; ++i) others.emplace_back(work);
    } catch (const std::system_error&) {  // the system gives no more threads: those that there are do it
    }
    work();
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i]->compiles) make(i);
  }
  return made;
}

}  // namespace plumb::detail
