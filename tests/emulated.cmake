# The same on the emulated device: the cases of all ops by the kernels of kernels/cuda, and what else that device does.
file(GLOB sources CONFIGURE_DEPENDS emulated/*_test.cpp)
list(FILTER sources EXCLUDE REGEX "every_kernel|races")
plumb_add_tests(plumb_test_emulated emulated ${sources})
set(on_device emulated/on_device.cpp)
plumb_add_tests(plumb_test_emulated_cases emulated ${on_device} op_cases_test.cpp emulated/every_kernel_test.cpp
  ops/random_test.cpp ops/fill_test.cpp ops/pool2d_gather_test.cpp kernels/accumulate_test.cpp kernels/augment_test.cpp
  optim/kernels_test.cpp ${cases})
plumb_add_tests(plumb_test_emulated_golden emulated ${on_device} ops/golden_test.cpp optim/golden_test.cpp
  models/golden_test.cpp models/golden_statistics_test.cpp models/golden.cpp)
foreach(target plumb_test_emulated plumb_test_emulated_cases plumb_test_emulated_golden)
  target_sources(${target} PRIVATE ${plumb_emulated_beside})
endforeach()
if(PLUMB_SANITIZE)  # The rest is arithmetic on the same kernels, and takes ten minutes.
  set_property(TEST plumb_test_emulated_cases APPEND PROPERTY ENVIRONMENT GTEST_FILTER=*EveryKernel*:*KernelsMatch*:Random*:Augment*)
  set_property(TEST plumb_test_emulated_golden APPEND PROPERTY ENVIRONMENT GTEST_FILTER=Optimizers/*)
  set_property(TEST plumb_test_emulated APPEND PROPERTY ENVIRONMENT GTEST_FILTER=-TrafficTest.*)  # counts
endif()

# The command with that device beside the host.
if(TARGET plumb_app)
  add_executable(plumb_on_emulator ${PROJECT_SOURCE_DIR}/app/main.cpp ${plumb_emulated_beside})
  plumb_quick_target(plumb_on_emulator -O1)
  target_link_libraries(plumb_on_emulator PRIVATE plumb_app)
  plumb_add_tests(plumb_test_emulated_app emulated emulated/app/command_test.cpp emulated/app/command.cpp)
  set_property(SOURCE emulated/app/command.cpp APPEND PROPERTY COMPILE_DEFINITIONS PLUMB_COMMAND="$<TARGET_FILE:plumb_on_emulator>")
  add_dependencies(plumb_test_emulated_app plumb_on_emulator)
  add_test(NAME emulated.gpu_probe COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/emulated/gpu_probe.sh $<TARGET_FILE:plumb_on_emulator>
    ${PROJECT_SOURCE_DIR}/scripts/gpu_suite)
  set_tests_properties(emulated.gpu_probe PROPERTIES LABELS emulated TIMEOUT 300 ${PLUMB_TEST_ENVIRONMENT})
endif()
