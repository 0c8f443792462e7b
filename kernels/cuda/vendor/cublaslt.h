// cuBLASLt, opened at first use: products of matrices with an epilogue, as candidates of the gate.
#pragma once

#include <cublasLt.h>

#include <string>

namespace plumb::cuda {

/// The functions of cuBLASLt that we call. A test may put its own in their places.
struct CublasLt {
  decltype(&cublasLtGetVersion) version;
  decltype(&cublasLtGetStatusString) status_string;
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtMatmul) matmul;
  decltype(&cublasLtMatmulDescInit_internal) init_operation;
  decltype(&cublasLtMatmulDescSetAttribute) set_operation;
  decltype(&cublasLtMatrixLayoutInit_internal) init_layout;
  decltype(&cublasLtMatrixLayoutSetAttribute) set_layout;
  decltype(&cublasLtMatmulPreferenceInit_internal) init_preference;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;
  decltype(&cublasLtMatmulAlgoConfigGetAttribute) algorithm_attribute;
};
/// Opens the library when it is first called; throws a sentence where it is not.
CublasLt& cublaslt();
/// "13.1.0"
std::string cublaslt_version();

}  // namespace plumb::cuda
