#include "dispatch/captured.h"

#include "core/error.h"

namespace plumb::detail {

std::unique_ptr<RuntimeGraph> captured(Runtime& runtime, const std::function<void(Runtime::Stream)>& work) {
  const Runtime::Stream stream = runtime.begin_capture();
  try {
    work(stream);
  } catch (...) {
    try {
      runtime.end_capture();
    } catch (const Error&) {  // a consequence of the first error
    }
    throw;
  }
  return runtime.end_capture();
}

}  // namespace plumb::detail
