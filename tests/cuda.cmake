# Steps planned for GPUs that are not there.
if(TARGET plumb_app)
  file(GLOB sources CONFIGURE_DEPENDS plan/*_test.cpp)
  plumb_add_tests(plumb_test_plan plan ${sources} plan/command.cpp ${PROJECT_SOURCE_DIR}/bench/allocations.cpp)
  # The library itself: a test asks it what it was told.
  target_link_libraries(plumb_test_plan PRIVATE plumb_app ${CMAKE_DL_LIBS} CUDA::cublasLt)
  target_include_directories(plumb_test_plan SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS} ${PLUMB_CUDNN_INCLUDE})
  set_property(SOURCE plan/command.cpp APPEND PROPERTY COMPILE_DEFINITIONS PLUMB_COMMAND="$<TARGET_FILE:plumb>")
  add_dependencies(plumb_test_plan plumb)
endif()

# The machine code of the kernels, against the table of the compiler's version.
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND)
  add_test(NAME sass.table COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/sass_table --check --build ${CMAKE_BINARY_DIR})
  set_tests_properties(sass.table PROPERTIES LABELS sass TIMEOUT 600 SKIP_RETURN_CODE 77 RUN_SERIAL TRUE)
endif()

# The cases of all ops, and what PyTorch and TensorFlow computed, on a GPU. A program each, which says why it does nothing
# where there is none.
function(plumb_add_gpu_tests name)
  add_executable(${name} gpu/on_gpu.cpp ${ARGN})
  plumb_quick_target(${name} -O0)
  target_link_libraries(${name} PRIVATE plumb_test_support)
  target_precompile_headers(${name} REUSE_FROM plumb_test_support)
  add_test(NAME gpu.${name} COMMAND ${name} --gtest_brief=1)
  set_tests_properties(gpu.${name} PROPERTIES LABELS gpu TIMEOUT 900 SKIP_RETURN_CODE 77 RUN_SERIAL TRUE ${PLUMB_TEST_ENVIRONMENT})
endfunction()
plumb_add_gpu_tests(plumb_test_gpu_cases op_cases_test.cpp ops/random_test.cpp ops/fill_test.cpp ops/pool2d_gather_test.cpp
  kernels/accumulate_test.cpp kernels/augment_test.cpp optim/kernels_test.cpp ${cases})
plumb_add_gpu_tests(plumb_test_gpu gpu/training_test.cpp)
if(TARGET plumb)
  target_sources(plumb_test_gpu PRIVATE gpu/command_test.cpp gpu/command.cpp)
  add_dependencies(plumb_test_gpu plumb)
endif()
plumb_add_gpu_tests(plumb_test_gpu_golden ops/golden_test.cpp optim/golden_test.cpp models/golden_test.cpp
  models/golden_statistics_test.cpp models/golden.cpp)
