// Functions for the host and for CUDA.
#pragma once

// Both compilers of nvcc take what calls the C library; what does not is constexpr, which they take by themselves.
#ifdef __CUDACC__
#define PLUMB_HOST_DEVICE __host__ __device__
#else
#define PLUMB_HOST_DEVICE
#endif
