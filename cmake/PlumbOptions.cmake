# The project's switches, and what holds for every target of its own.
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  message(FATAL_ERROR "plumbline's CPU kernels are written for x86-64, and this is ${CMAKE_SYSTEM_PROCESSOR}")
endif()

set(PLUMB_CUDA AUTO CACHE STRING "CUDA: EMULATED runs its kernels on the host; AUTO (where a toolkit is found), ON or OFF")
set_property(CACHE PLUMB_CUDA PROPERTY STRINGS AUTO ON OFF EMULATED)
set(PLUMB_ARCH native CACHE STRING "Processor to compile for, as in -march (native, x86-64-v3, x86-64-v4, ...)")
set(PLUMB_SANITIZE "" CACHE STRING "Sanitizers for the project's own targets: empty, address;undefined or thread")
option(PLUMB_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(PLUMB_TEST_SOURCES "Test also what is the same in every build: the sources, the scripts, building from source" ON)
option(PLUMB_BUILD_BENCH "Build the benchmarks" ${PROJECT_IS_TOP_LEVEL})
option(PLUMB_BUILD_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
option(PLUMB_BUILD_APP "Build the plumb command" ${PROJECT_IS_TOP_LEVEL})
option(PLUMB_INSTALL "Make the install target" ${PROJECT_IS_TOP_LEVEL})
option(PLUMB_WERROR "Warnings are errors on the project's own targets" ${PROJECT_IS_TOP_LEVEL})

if(PROJECT_IS_TOP_LEVEL)
  if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
  endif()
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
endif()

# Gives a target of our own the warnings, the processor and the sanitizers.
function(plumb_own_target target)
  target_compile_features(${target} PRIVATE cxx_std_20)
  # Files have names of their own that others have too, so that they cannot be put together.
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF UNITY_BUILD OFF)
  # Left out: what g++ 12 sees after inlining and is not there (overlaps in std::string, vector intrinsics' undefined
  # operands, the ends of buffers).
  set(flags -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow
    -Wno-maybe-uninitialized -ffp-contract=fast -fno-math-errno -fno-trapping-math)
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${flags}>")
  if(PLUMB_WERROR)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
  endif()
  if(PLUMB_ARCH)
    # For most of Intel's processors with AVX-512, g++ makes vectors of half its width of plain loops, for the sake of the
    # clock of what is in no vectors; here all that takes time is.
    target_compile_options(${target}
      PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-march=${PLUMB_ARCH};-mprefer-vector-width=512>")
  endif()
  if(PLUMB_SANITIZE)
    string(REPLACE ";" "," names "${PLUMB_SANITIZE}")
    set(defined PLUMB_SANITIZED)
    if(names MATCHES thread)
      list(APPEND defined PLUMB_SANITIZED_THREADS)
    endif()
    target_compile_options(${target} PUBLIC -fsanitize=${names} -fno-omit-frame-pointer -g1)
    target_link_options(${target} PUBLIC -fsanitize=${names})
    # The compiler's own macros differ from source to source (PLUMB_UNSHARED_OPTIONS).
    target_compile_definitions(${target} PUBLIC ${defined})
    if(names MATCHES undefined)
      # Left out: what AddressSanitizer finds by itself; these checks make up a quarter of a build.
      target_compile_options(${target} PUBLIC -fno-sanitize-recover=undefined -fno-sanitize=null,object-size)
    endif()
  endif()
endfunction()

# For sources of plain loops that start no thread and share nothing: ThreadSanitizer has nothing to find there, and takes
# minutes over them.
set(PLUMB_UNSHARED_OPTIONS)
if(PLUMB_SANITIZE MATCHES thread)
  set(PLUMB_UNSHARED_OPTIONS -fno-sanitize=thread)
endif()

# The same for programs, whose time is the library's: under sanitizers, optimising them takes longer than it saves.
function(plumb_program_target target)
  plumb_own_target(${target})
  if(PLUMB_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  endif()
endfunction()

# The same for command lines, with -O1, and tests, with -O0, which are compiled quickly rather than well: nobody waits for
# them. Their loops, where they have any that take time, are in sources with options of their own.
function(plumb_quick_target target level)
  plumb_program_target(${target})
  if(NOT PLUMB_SANITIZE)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:${level}>)
    # The command is not built under sanitizers: the containers check what they can by themselves.
    target_compile_definitions(${target} PRIVATE _GLIBCXX_ASSERTIONS)
  endif()
endfunction()

# Properties of every test that computes. Waiting threads sleep, since tests run side by side. ThreadSanitizer does not see
# the synchronisation inside libgomp: there, the only threads are the tests' own. One value each: gtest_discover_tests
# flattens lists.
set(omp_threads 2)
if(PLUMB_SANITIZE MATCHES thread)
  set(omp_threads 1)
endif()
set(PLUMB_TEST_ENVIRONMENT ENVIRONMENT OMP_NUM_THREADS=${omp_threads}
  ENVIRONMENT_MODIFICATION OMP_WAIT_POLICY=set:passive)
