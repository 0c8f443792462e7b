// Combines several observers into one.
#pragma once

#include <vector>

#include "../dispatch/recorder.h"

namespace plumb::training {

/// Forwards to several observers in the order in which they were added; does not own them.
class Observers final : public Observer {
 public:
  void add(Observer* o) { all_.push_back(o); }
  bool empty() const { return all_.empty(); }
  void before(const PreparedKernel& p) override {
    for (Observer* o : all_) o->before(p);
  }
  void after(const PreparedKernel& p, const Launch& l) override {
    for (Observer* o : all_) o->after(p, l);
  }

 private:
  std::vector<Observer*> all_;
};

}  // namespace plumb::training
