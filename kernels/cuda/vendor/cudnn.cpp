#include "kernels/cuda/vendor/cudnn.h"

#include <map>
#include <mutex>

#include "core/error.h"
#include "core/per_thread.h"
#include "kernels/cuda/vendor/shared_library.h"

namespace plumb::cuda {
namespace {

constexpr size_t kOldest = 90800;  // plans for a device that is only described

std::string version_text(size_t v) {
  const size_t major = v < 10000 ? 1000 : 10000;  // up to 8 it had three digits for the rest
  return message("{}.{}.{}", v / major, v % major / 100, v % 100);
}

Cudnn open() {
  const SharedLibrary library("libcudnn.so.9", "cuDNN 9 (libcudnn.so.9)");
  Cudnn c{};
  const auto take = [&]<class F>(F& to, const char* name) { to = reinterpret_cast<F>(library.symbol(name)); };
  take(c.version, "cudnnGetVersion");
  PLUMB_CHECK(c.version() / 10000 == CUDNN_MAJOR || c.version() < kOldest,
              "cuDNN {} is of another major version than {}, which is wanted", version_text(c.version()), CUDNN_MAJOR);
  PLUMB_CHECK(c.version() >= kOldest, "cuDNN {} is too old; install {} or a newer 9", version_text(c.version()),
              version_text(kOldest));
  take(c.error_string, "cudnnGetErrorString");
  take(c.last_error, "cudnnGetLastErrorString");
  take(c.create, "cudnnCreate");
  take(c.set_stream, "cudnnSetStream");
  take(c.create_descriptor, "cudnnBackendCreateDescriptor");
  take(c.destroy_descriptor, "cudnnBackendDestroyDescriptor");
  take(c.initialize, "cudnnBackendInitialize");
  take(c.set_attribute, "cudnnBackendSetAttribute");
  take(c.get_attribute, "cudnnBackendGetAttribute");
  take(c.finalize, "cudnnBackendFinalize");
  take(c.execute, "cudnnBackendExecute");
  return c;
}

}  // namespace

Cudnn& cudnn() {
  static Cudnn* c = new Cudnn(open());
  return *c;
}

std::string cudnn_version() { return version_text(cudnn().version()); }

void check(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) [[likely]]
    return;
  char text[512] = "";
  cudnn().last_error(text, sizeof text);
  fail("cuDNN {} refuses {}: {}{}{}", cudnn_version(), what, cudnn().error_string(status), *text ? ", " : "", text);
}

Descriptor::Descriptor(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t d = nullptr;
  check(cudnn().create_descriptor(type, &d), "a descriptor");
  d_.reset(d);
}
void Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                     const void* values) {
  check(cudnn().set_attribute(get(), name, type, count, values), "an attribute");
}
void Descriptor::set(cudnnBackendAttributeName_t name, const Descriptor& child) {
  const cudnnBackendDescriptor_t d = child.get();
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &d);
}
void Descriptor::set(cudnnBackendAttributeName_t name, const std::vector<Descriptor>& children) {
  std::vector<cudnnBackendDescriptor_t> all;
  for (const Descriptor& d : children) all.push_back(d.get());
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(all.size()), all.data());
}
void Descriptor::finalize(const char* what) { check(cudnn().finalize(get()), what); }
int64_t Descriptor::number(cudnnBackendAttributeName_t name) const {
  int64_t v = -1, n = 0;
  const auto status = cudnn().get_attribute(get(), name, CUDNN_TYPE_INT64, 1, &n, &v);
  return status == CUDNN_STATUS_SUCCESS && n == 1 ? v : -1;
}

// ---- devices

struct Target::Handle {
  cudnnHandle_t handle = nullptr;
  Runtime::Stream stream = nullptr;
};
// A thread's. None is destroyed, since plans that were made with it may outlive the thread: the next thread takes it.
struct Target::Handles {
  struct Lent {
    Handles* to;
    std::unique_ptr<Handle> handle;
    ~Lent() {
      const std::lock_guard lock(to->mutex);
      to->idle.push_back(std::move(handle));
    }
  };
  std::mutex mutex;
  std::vector<std::unique_ptr<Handle>> idle;
  detail::PerThread<Lent> lent;
};

Target::Target(Runtime& runtime) : runtime_(runtime) {
  const std::string& json = runtime.properties().description;
  if (json.empty()) {
    handles_ = std::make_unique<Handles>();
    return;
  }
  description_ = std::make_unique<Descriptor>(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  description_->set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, static_cast<int64_t>(json.size()),
                    json.data());
  description_->finalize("the description of the device");
}
Target::~Target() = default;

std::unique_ptr<Target::Handle> Target::make_handle() const {
  auto made = std::make_unique<Handle>();
  // This may be the thread's first work here, and be captured, where making a handle is none of what is.
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  cudaThreadExchangeStreamCaptureMode(&mode);
  const cudnnStatus_t status = cudnn().create(&made->handle);
  cudaThreadExchangeStreamCaptureMode(&mode);
  check(status, "a handle");
  return made;
}

Target::Handle& Target::handle() const {
  Handles& all = *handles_;
  const auto lend = [&] {
    std::unique_ptr<Handle> h;
    {
      const std::lock_guard lock(all.mutex);
      if (!all.idle.empty()) h = std::move(all.idle.back()), all.idle.pop_back();
    }
    if (!h) {
      runtime_.make_current();
      h = make_handle();
    } else if (h->stream) {  // which may have ended with the thread
      check(cudnn().set_stream(h->handle, nullptr), "no stream");
      h->stream = nullptr;
    }
    return std::make_unique<Handles::Lent>(&all, std::move(h));
  };
  Handle& h = *all.lent.get(lend).handle;
  runtime_.make_current();  // plans are made on it, too
  return h;
}

void Target::tell(Descriptor& d, cudnnBackendAttributeName_t handle_name,
                  cudnnBackendAttributeName_t description_name) const {
  if (description_) {
    d.set(description_name, *description_);
  } else {
    d.set(handle_name, CUDNN_TYPE_HANDLE, 1, &handle().handle);
  }
}

void Target::tell_graph(Descriptor& graph) const {
  if (!description_) graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle().handle);
}

void Target::execute(const Descriptor& plan, const Descriptor& pointers, Runtime::Stream stream) const {
  Handle& h = handle();
  runtime_.count_launch();
  if (h.stream != stream) {
    check(cudnn().set_stream(h.handle, static_cast<cudaStream_t>(stream)), "a stream");
    h.stream = stream;
  }
  check(cudnn().execute(h.handle, plan.get(), pointers.get()), "to run a plan");
}

const Target* target_of(Device device) {
  static std::mutex mutex;
  static auto* all = new std::map<int, std::unique_ptr<Target>>;  // never freed: kernels outlive statics
  Runtime& r = runtime_of(device);
  if (!r.properties().is_gpu()) return nullptr;
  const std::lock_guard lock(mutex);
  auto& target = (*all)[device.index];
  if (!target) target = std::make_unique<Target>(r);
  return target.get();
}

// ---- tensors

cudnnDataType_t cudnn_dtype(DType t) {
  switch (t) {
    case DType::kF32: return CUDNN_DATA_FLOAT;
    case DType::kF64: return CUDNN_DATA_DOUBLE;
    case DType::kF16: return CUDNN_DATA_HALF;
    case DType::kBf16: return CUDNN_DATA_BFLOAT16;
    case DType::kI32: return CUDNN_DATA_INT32;
    case DType::kI64: return CUDNN_DATA_INT64;
    case DType::kU8: return CUDNN_DATA_UINT8;
  }
  fail("cuDNN has no dtype {}", t);
}

Descriptor tensor(const TensorSpec& s, int64_t id, Storage storage) {
  const cudnnDataType_t type = cudnn_dtype(s.dtype);
  const Strides strides = strides_of(s);
  std::vector<int64_t> extents(s.shape.begin(), s.shape.end()), steps(strides.of, strides.of + s.rank());
  Descriptor d(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  d.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
  d.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, s.rank(), extents.data());
  d.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, s.rank(), steps.data());
  d.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  d.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 16);
  const bool yes = true;
  if (storage == Storage::kNone) d.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &yes);
  if (storage == Storage::kByValue) d.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &yes);
  d.finalize("a tensor");
  return d;
}

Descriptor pointwise(cudnnPointwiseMode_t mode, const Descriptor& x, const Descriptor* b, const Descriptor& y) {
  const cudnnDataType_t compute = CUDNN_DATA_FLOAT;
  const cudnnNanPropagation_t nan = CUDNN_PROPAGATE_NAN;
  Descriptor function(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  function.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
  function.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &compute);
  if (mode == CUDNN_POINTWISE_RELU_FWD)
    function.set(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, 1, &nan);
  function.finalize("a pointwise function");
  Descriptor op(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  op.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, function);
  op.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
  if (b) op.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
  op.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  op.finalize("a pointwise operation");
  return op;
}

}  // namespace plumb::cuda
