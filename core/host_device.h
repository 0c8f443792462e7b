// Functions for the host and for CUDA.
#pragma once

// Functions that call the C library need this mark; constexpr functions do not, since nvcc takes them for both sides.
#ifdef __CUDACC__
#define PLUMB_HOST_DEVICE __host__ __device__
#else
#define PLUMB_HOST_DEVICE
#endif
