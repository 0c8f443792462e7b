// A driver of CUDA that drives nothing, for planning where there is none: cuDNN leaves out the engines that it would
// compile at run time if it finds no driver to load them with. It says that there is no device, and that all else went
// well. The functions are those that cuDNN 9 looks up; what they are told they ignore.
#include <cstdint>

namespace {
constexpr int kDone = 0, kNoDevice = 100, kNotFound = 500;
void* const kSomething = reinterpret_cast<void*>(uintptr_t{8});
}  // namespace

extern "C" {
// What asks for devices, or for more of the driver.
int cuInit(...) { return kNoDevice; }
int cuDeviceGetCount(int* count) { return *count = 0, kNoDevice; }
int cuDriverGetVersion(int* version) { return *version = 13000, kDone; }
int cuGetProcAddress(...) { return kNotFound; }
int cuGetProcAddress_v2(...) { return kNotFound; }
int cuGetErrorName(int, const char** name) { return *name = "CUDA_ERROR_NO_DEVICE", kDone; }
int cuGetErrorString(int, const char** text) { return *text = "there is no driver", kDone; }

// What makes handles.
int cuLibraryLoadData(void** made, ...) { return *made = kSomething, kDone; }
int cuLibraryLoadFromFile(void** made, ...) { return *made = kSomething, kDone; }
int cuLibraryGetKernel(void** made, ...) { return *made = kSomething, kDone; }
int cuKernelGetFunction(void** made, ...) { return *made = kSomething, kDone; }
int cuModuleLoadData(void** made, ...) { return *made = kSomething, kDone; }
int cuModuleLoadDataEx(void** made, ...) { return *made = kSomething, kDone; }
int cuModuleLoadFatBinary(void** made, ...) { return *made = kSomething, kDone; }
int cuModuleGetFunction(void** made, ...) { return *made = kSomething, kDone; }

// The rest.
#define PLUMB_DOES_NOTHING(name) \
  int name(...) { return kDone; }
PLUMB_DOES_NOTHING(cuCtxGetCurrent)
PLUMB_DOES_NOTHING(cuCtxGetDevice)
PLUMB_DOES_NOTHING(cuCtxGetLimit)
PLUMB_DOES_NOTHING(cuCtxPopCurrent)
PLUMB_DOES_NOTHING(cuCtxPushCurrent)
PLUMB_DOES_NOTHING(cuDeviceGet)
PLUMB_DOES_NOTHING(cuDeviceGetAttribute)
PLUMB_DOES_NOTHING(cuDevicePrimaryCtxRelease)
PLUMB_DOES_NOTHING(cuDevicePrimaryCtxReset)
PLUMB_DOES_NOTHING(cuDevicePrimaryCtxRetain)
PLUMB_DOES_NOTHING(cuFuncGetAttribute)
PLUMB_DOES_NOTHING(cuFuncSetAttribute)
PLUMB_DOES_NOTHING(cuKernelGetAttribute)
PLUMB_DOES_NOTHING(cuKernelSetAttribute)
PLUMB_DOES_NOTHING(cuLaunchCooperativeKernel)
PLUMB_DOES_NOTHING(cuLaunchKernel)
PLUMB_DOES_NOTHING(cuLaunchKernelEx)
PLUMB_DOES_NOTHING(cuLibraryUnload)
PLUMB_DOES_NOTHING(cuLinkAddData)
PLUMB_DOES_NOTHING(cuLinkAddData_v2)
PLUMB_DOES_NOTHING(cuLinkAddFile_v2)
PLUMB_DOES_NOTHING(cuLinkComplete)
PLUMB_DOES_NOTHING(cuLinkCreate)
PLUMB_DOES_NOTHING(cuLinkCreate_v2)
PLUMB_DOES_NOTHING(cuLinkDestroy)
PLUMB_DOES_NOTHING(cuMemcpyDtoH_v2)
PLUMB_DOES_NOTHING(cuModuleGetGlobal_v2)
PLUMB_DOES_NOTHING(cuModuleUnload)
PLUMB_DOES_NOTHING(cuOccupancyMaxActiveBlocksPerMultiprocessor)
PLUMB_DOES_NOTHING(cuOccupancyMaxPotentialClusterSize)
PLUMB_DOES_NOTHING(cuStreamGetCtx)
PLUMB_DOES_NOTHING(cuStreamSynchronize)
PLUMB_DOES_NOTHING(cuTensorMapEncodeIm2col)
PLUMB_DOES_NOTHING(cuTensorMapEncodeTiled)
}
