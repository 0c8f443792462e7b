// Tensors given to raw work, and read from it.
#include "measure/onednn/steps.h"

namespace plumb::measure::raw {
namespace {

// The reorder's memory objects live as long as the function.
std::function<void()> conversion(memory from, memory to, dnnl::stream stream) {
  return [reorder = dnnl::reorder(from, to), from, to, stream]() mutable {
    reorder.execute(stream, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
    stream.wait();
  };
}

}  // namespace

std::function<void()> Steps::give(size_t input, void* plain) {
  Port& p = inputs_.at(input);
  if (p.taken.get_desc() != p.own) return conversion({p.own, cpu::dnnl_engine(), plain}, p.taken, stream_);
  p.taken.set_data_handle(plain);
  return [] {};
}

std::function<void()> Steps::take(void* plain) {
  if (result_.taken.get_desc() != result_.own) {
    return conversion(result_.taken, {result_.own, cpu::dnnl_engine(), plain}, stream_);
  }
  result_.taken.set_data_handle(plain);
  return [] {};
}

bool Steps::share(size_t input, RawExchange& other, size_t input_of_other) {
  const memory& theirs = static_cast<Steps&>(other).inputs_.at(input_of_other).taken;
  memory& ours = inputs_.at(input).taken;
  if (ours.get_desc() != theirs.get_desc()) return false;
  ours.set_data_handle(theirs.get_data_handle());
  return true;
}

}  // namespace plumb::measure::raw
