// cuDNN's graph API: the library, opened at first use, and descriptors that own themselves. Describing and planning
// need no device.
#pragma once

#include <cudnn.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/runtime.h"
#include "core/spec.h"

namespace plumb::cuda {

/// The functions of cuDNN that we call. A test may put its own in their places.
struct Cudnn {
  decltype(&cudnnGetVersion) version;
  decltype(&cudnnGetErrorString) error_string;
  decltype(&cudnnGetLastErrorString) last_error;
  decltype(&cudnnCreate) create;
  decltype(&cudnnSetStream) set_stream;
  decltype(&cudnnBackendCreateDescriptor) create_descriptor;
  decltype(&cudnnBackendDestroyDescriptor) destroy_descriptor;
  decltype(&cudnnBackendInitialize) initialize;
  decltype(&cudnnBackendSetAttribute) set_attribute;
  decltype(&cudnnBackendGetAttribute) get_attribute;
  decltype(&cudnnBackendFinalize) finalize;
  decltype(&cudnnBackendExecute) execute;
};
/// Opens the library when it is first called; throws a sentence where it is not, or is too old.
Cudnn& cudnn();
/// "9.19.0"
std::string cudnn_version();

/// Throws unless the library did what it was asked for; `what` is the thing that it refused.
void check(cudnnStatus_t status, const char* what);

/// A backend descriptor.
class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type);
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count, const void* values);
  void set(cudnnBackendAttributeName_t name, int64_t v) { set(name, CUDNN_TYPE_INT64, 1, &v); }
  void set(cudnnBackendAttributeName_t name, const Descriptor& child);
  void set(cudnnBackendAttributeName_t name, const std::vector<Descriptor>& children);
  void finalize(const char* what);
  /// False where the library has a reason not to.
  bool try_finalize() { return cudnn().finalize(get()) == CUDNN_STATUS_SUCCESS; }
  /// A number that it says of itself; -1 if it does not.
  int64_t number(cudnnBackendAttributeName_t name) const;
  cudnnBackendDescriptor_t get() const { return d_.get(); }

 private:
  struct Destroy {
    void operator()(void* d) const { cudnn().destroy_descriptor(d); }
  };
  std::unique_ptr<void, Destroy> d_;
};

/// What stands for a device in heuristics and plans: a handle of the library, or a description. Null for devices that
/// are neither CUDA's nor described, the emulated one for instance, which cuDNN does not know.
class Target;
const Target* target_of(Device device);

class Target {
 public:
  explicit Target(Runtime& runtime);
  ~Target();
  bool is_present() const { return description_ == nullptr; }
  /// Says to a heuristic or a plan which device it is for.
  void tell(Descriptor& d, cudnnBackendAttributeName_t handle_name, cudnnBackendAttributeName_t description_name) const;
  void tell_graph(Descriptor& graph) const;
  /// Runs a plan on the stream. A handle a thread: the library allows no two threads in one.
  void execute(const Descriptor& plan, const Descriptor& pointers, Runtime::Stream stream) const;

 private:
  struct Handle;
  std::unique_ptr<Handle> make_handle() const;
  Handle& handle() const;
  struct Handles;
  Runtime& runtime_;
  std::unique_ptr<Descriptor> description_;
  std::unique_ptr<Handles> handles_;
};

cudnnDataType_t cudnn_dtype(DType t);
/// Where a tensor of a graph lies: in the device's memory, nowhere (it goes from operation to operation), or, of a
/// single number, with the host.
enum class Storage { kDevice, kNone, kByValue };
/// A tensor of a graph. Tensors of one graph have different ids.
Descriptor tensor(const TensorSpec& s, int64_t id, Storage storage = Storage::kDevice);
/// y = x, with b where there is one, by a function of elements in f32.
Descriptor pointwise(cudnnPointwiseMode_t mode, const Descriptor& x, const Descriptor* b, const Descriptor& y);

}  // namespace plumb::cuda
