#include "kernels/cuda/vendor/cublaslt.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>

#include "core/error.h"
#include "core/runtime.h"
#include "dispatch/kernel_cache.h"
#include "kernels/cuda/vendor/offers.h"
#include "kernels/cuda/vendor/shared_library.h"

#define PLUMB_TEXT_OF(x) #x
#define PLUMB_TEXT(x) PLUMB_TEXT_OF(x)

namespace plumb::cuda {
namespace {

// Its numbers are the toolkit's, and a library of another major version has another name.
constexpr char kFile[] = "libcublasLt.so." PLUMB_TEXT(CUBLAS_VER_MAJOR);

CublasLt open() {
  const SharedLibrary library(kFile, "cuBLASLt");
  CublasLt c{};
  const auto take = [&]<class F>(F& to, const char* name) { to = reinterpret_cast<F>(library.symbol(name)); };
  take(c.version, "cublasLtGetVersion");
  take(c.status_string, "cublasLtGetStatusString");
  take(c.create, "cublasLtCreate");
  take(c.matmul, "cublasLtMatmul");
  take(c.init_operation, "cublasLtMatmulDescInit_internal");
  take(c.set_operation, "cublasLtMatmulDescSetAttribute");
  take(c.init_layout, "cublasLtMatrixLayoutInit_internal");
  take(c.set_layout, "cublasLtMatrixLayoutSetAttribute");
  take(c.init_preference, "cublasLtMatmulPreferenceInit_internal");
  take(c.set_preference, "cublasLtMatmulPreferenceSetAttribute");
  take(c.heuristic, "cublasLtMatmulAlgoGetHeuristic");
  take(c.algorithm_attribute, "cublasLtMatmulAlgoConfigGetAttribute");
  return c;
}

void check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) [[likely]]
    return;
  fail("cuBLASLt {} refuses {}: {}", cublaslt_version(), what, cublaslt().status_string(status));
}

// One a device, which any thread may use; never freed: kernels outlive statics.
cublasLtHandle_t handle_of(Device device) {
  static std::mutex mutex;
  static auto* all = new std::map<int, cublasLtHandle_t>;
  const std::lock_guard lock(mutex);
  cublasLtHandle_t& handle = (*all)[device.index];
  runtime_of(device).make_current();  // for whatever the handle is asked
  if (!handle) check(cublaslt().create(&handle), "a handle");
  return handle;
}

// What a product may use while it runs: what NVIDIA recommends for Hopper and later, and for what came before.
size_t workspace_of(Device device) {
  const size_t recommended = size_t{runtime_of(device).properties().capability >= 90 ? 32u : 4u} << 20;
  return std::min(recommended, workspace_limit(device));
}

cudaDataType_t cuda_dtype(DType t) {
  return t == DType::kF64 ? CUDA_R_64F : t == DType::kBf16 ? CUDA_R_16BF : CUDA_R_32F;
}
cublasComputeType_t compute_type(DType t, MathMode math) {
  if (t == DType::kF64) return CUBLAS_COMPUTE_64F;
  return t == DType::kF32 && math == MathMode::kTf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

// A product in the library's terms. Plain bytes: a run takes a copy to tell it where bias and mask lie.
struct Operation {
  cublasLtMatmulDescOpaque_t operation;
  cublasLtMatrixLayoutOpaque_t a, b, d;
};

template <class T>
void set(cublasLtMatmulDescOpaque_t& operation, cublasLtMatmulDescAttributes_t name, T value) {
  check(cublaslt().set_operation(&operation, name, &value, sizeof value), "an attribute of a product");
}

cublasLtMatrixLayoutOpaque_t layout_of(DType dtype, const LtMatrix& m, int64_t count) {
  cublasLtMatrixLayoutOpaque_t l;
  check(cublaslt().init_layout(&l, sizeof l, cuda_dtype(dtype), static_cast<uint64_t>(m.rows),
                               static_cast<uint64_t>(m.columns), std::max<int64_t>(1, m.rows)),
        "a matrix");
  if (count > 1) {
    const auto batch = static_cast<int32_t>(count);
    check(cublaslt().set_layout(&l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch), "a batch");
    check(cublaslt().set_layout(&l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &m.stride, sizeof m.stride),
          "a batch");
  }
  return l;
}

cublasLtEpilogue_t epilogue_of(const LtProduct& p) {
  const bool has_bias = p.bias >= 0;
  if (p.gives_bias) return CUBLASLT_EPILOGUE_BGRADB;
  if (p.mask >= 0) return CUBLASLT_EPILOGUE_DRELU;
  if (p.gives_mask) return has_bias ? CUBLASLT_EPILOGUE_RELU_AUX_BIAS : CUBLASLT_EPILOGUE_RELU_AUX;
  if (p.relu) return has_bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
  return has_bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

Operation operation_of(const LtProduct& p, DType dtype, MathMode math) {
  Operation o;
  check(cublaslt().init_operation(&o.operation, sizeof o.operation, compute_type(dtype, math),
                                  dtype == DType::kF64 ? CUDA_R_64F : CUDA_R_32F),
        "a product");
  set(o.operation, CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(o.operation, CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(o.operation, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(p));
  // Where they lie a run says; that there is one, and aligned as tensors are, the heuristic may ask.
  const auto* const somewhere = reinterpret_cast<const void*>(uintptr_t{16});
  if (p.bias >= 0 || p.gives_bias) set(o.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, somewhere);
  if (p.mask >= 0 || p.gives_mask) {
    set(o.operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, somewhere);
    set(o.operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, (p.d.rows + 127) / 128 * 128);  // in bits
  }
  o.a = layout_of(dtype, p.a, p.count);
  o.b = layout_of(dtype, p.b, p.count);
  o.d = layout_of(p.is_d_f32 ? DType::kF32 : dtype, p.d, p.count);
  return o;
}

std::vector<cublasLtMatmulHeuristicResult_t> proposals(const Operation& o, DType dtype, bool has_bias, Device device) {
  cublasLtMatmulPreferenceOpaque_t preference;
  check(cublaslt().init_preference(&preference, sizeof preference), "a preference");
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t name, auto value) {
    check(cublaslt().set_preference(&preference, name, &value, sizeof value), "a preference");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_of(device));
  if (dtype == DType::kBf16) {  // sums in parts would be rounded to it, or else their sum before the bias is added
    const auto scheme = has_bias ? CUBLASLT_REDUCTION_SCHEME_NONE : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, static_cast<uint32_t>(scheme));
  }
  for (const auto name : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    prefer(name, uint32_t{16});
  std::vector<cublasLtMatmulHeuristicResult_t> results(8);
  int count = 0;
  Operation copy = o;
  const auto status = cublaslt().heuristic(handle_of(device), &copy.operation, &copy.a, &copy.b, &copy.d, &copy.d,
                                           &preference, static_cast<int>(results.size()), results.data(), &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return {};
  check(status, "to propose algorithms");
  results.resize(static_cast<size_t>(count));
  std::erase_if(results, [](const auto& r) { return r.state != CUBLAS_STATUS_SUCCESS; });
  return results;
}

// "cublaslt_a66_t20_s7_k1_c3": algorithm, tile, stages, split of the depth and, where they are not 0, how the parts are
// added up, the order of blocks, the algorithm's own option and the shape of clusters, which name it in any process.
std::string name_of(const cublasLtMatmulAlgo_t& algorithm) {
  const auto number = [&]<class T>(cublasLtMatmulAlgoConfigAttributes_t name, T v) {
    size_t written = 0;
    cublaslt().algorithm_attribute(&algorithm, name, &v, sizeof v, &written);
    return static_cast<int64_t>(v);
  };
  std::string name =
      message("cublaslt_a{}_t{}_s{}_k{}", number(CUBLASLT_ALGO_CONFIG_ID, int32_t{}),
              number(CUBLASLT_ALGO_CONFIG_TILE_ID, uint32_t{}), number(CUBLASLT_ALGO_CONFIG_STAGES_ID, uint32_t{}),
              number(CUBLASLT_ALGO_CONFIG_SPLITK_NUM, int32_t{}));
  const auto add = [&](const char* letter, int64_t v) {
    if (v) name += message("_{}{}", letter, v);
  };
  add("r", number(CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, uint32_t{}));
  add("w", number(CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, uint32_t{}));
  add("o", number(CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, uint32_t{}));
  add("c", number(CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, uint16_t{}));
  return name;
}

std::unique_ptr<Kernel> kernel_of(const std::string& algorithm, const LtProduct& p, const Operation& operation,
                                  const cublasLtMatmulHeuristicResult_t& r, DType dtype, MathMode math, Device device) {
  const auto run = [=, is_f64 = dtype == DType::kF64, handle = handle_of(device),
                    &runtime = runtime_of(device)](const Launch& l) {
    Operation o = operation;
    const auto point = [&](cublasLtMatmulDescAttributes_t name, bool is_output, int input) {
      if (is_output) set(o.operation, name, l.out[1]);
      if (input >= 0) set(o.operation, name, l.in[static_cast<size_t>(input)]);
    };
    point(CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.gives_bias, p.bias);
    point(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, p.gives_mask, p.mask);
    constexpr float kOne = 1, kZero = 0;
    constexpr double kOne64 = 1, kZero64 = 0;
    const void* const one = is_f64 ? static_cast<const void*>(&kOne64) : &kOne;
    const void* const zero = is_f64 ? static_cast<const void*>(&kZero64) : &kZero;
    runtime.make_current();
    runtime.count_launch();
    check(
        cublaslt().matmul(handle, &o.operation, one, l.in[p.a.input], &o.a, l.in[p.b.input], &o.b, zero, l.out[0], &o.d,
                          l.out[0], &o.d, &r.algo, l.workspace, r.workspaceSize, static_cast<cudaStream_t>(l.stream)),
        "to run a product");
  };
  auto kernel = make_kernel("cublaslt:" + algorithm.substr(sizeof("cublaslt_") - 1), run);
  kernel->info().workspace_bytes = r.workspaceSize;
  kernel->info().launches = 1;
  if (math == MathMode::kTf32 && dtype == DType::kF32) kernel->info().notes = "tf32";
  return kernel;
}

// On a device that is only described: which algorithm it will be, only a device tells.
std::unique_ptr<Kernel> unknown_kernel(Device device) {
  auto kernel = make_kernel("cublaslt:needs_a_device", [](const Launch&) {});
  kernel->info().workspace_bytes = workspace_of(device);
  kernel->info().launches = 1;
  kernel->info().notes = "which_algorithm_only_a_device_tells";
  return kernel;
}

}  // namespace

CublasLt& cublaslt() {
  static CublasLt* c = new CublasLt(open());
  return *c;
}

std::string cublaslt_version() {
  const size_t v = cublaslt().version();
  return message("{}.{}.{}", v / 10000, v / 100 % 100, v % 100);
}

void offer_cublaslt(const LtProduct& p, DType dtype, MathMode math, Device device, Candidates& candidates) {
  const Runtime& runtime = runtime_of(device);
  if (!runtime.properties().is_gpu()) return;
  if (dtype != DType::kF32 && dtype != DType::kF64 && dtype != DType::kBf16) return;
  if (p.d.rows == 0 || p.d.columns == 0 || p.depth == 0 || p.count == 0) return;  // matrices have no extents of 0
  if (std::max({p.d.rows, p.d.columns, p.depth, p.count}) > INT32_MAX) return;  // its extents are 32 bits; ours are not
  // Known to be proposed and then to fail: more matrices than a grid is high, and operands of 2^31 elements.
  const auto elements = [&](const LtMatrix& m) {
    return static_cast<double>(p.count) * static_cast<double>(m.rows) * static_cast<double>(m.columns);
  };
  if (p.count > 65535 || std::max({elements(p.a), elements(p.b), elements(p.d)}) > INT32_MAX) return;
  if (p.gives_mask && p.d.rows % 128 != 0) return;  // it does not say what it writes past the end of a row
  if (!runtime.is_present()) {
    candidates.add(Provider::kCublasLt, "cublaslt", [=] { return unknown_kernel(device); });
    return;
  }
  const Operation o = operation_of(p, dtype, math);
  std::set<std::string> names;
  for (const auto& r : proposals(o, dtype, p.bias >= 0, device)) {
    std::string name = name_of(r.algo);
    if (!names.insert(name).second) continue;  // one that differs in smaller things
    candidates.add(Provider::kCublasLt, name, [=] { return kernel_of(name, p, o, r, dtype, math, device); });
  }
}

}  // namespace plumb::cuda
