# What the library is built on. oneDNN is dnnl to CMake, in 2.x and 3.x.
macro(plumb_require package)  # a macro: find_package sets variables
  find_package(${package} ${ARGN} QUIET)
  if(NOT ${package}_FOUND)
    string(REPLACE ";" " " wanted "${package} ${ARGN}")
    string(STRIP "${wanted}" wanted)
    message(FATAL_ERROR "plumbline needs ${wanted}, which was not found; scripts/setup installs it")
  endif()
endmacro()
plumb_require(Threads)
plumb_require(OpenMP COMPONENTS CXX)
if(dnnl_DIR AND NOT EXISTS "${dnnl_DIR}/dnnl-config.cmake" AND NOT EXISTS "${dnnl_DIR}/dnnlConfig.cmake")
  set(nowhere ${dnnl_DIR})
  unset(dnnl_DIR CACHE)  # CMake would look elsewhere without a word
  message(FATAL_ERROR "dnnl_DIR=${nowhere} has no oneDNN; scripts/setup --onednn3 fetches the one of the preset onednn3. To "
    "look elsewhere, configure again without it")
endif()
plumb_require(dnnl CONFIG)
plumb_require(Eigen3 3.4 CONFIG)
plumb_require(nlohmann_json 3.9 CONFIG)
if(dnnl_VERSION VERSION_LESS 2.6)
  message(FATAL_ERROR "plumbline needs oneDNN 2.6 or newer; ${dnnl_DIR} is ${dnnl_VERSION}")
endif()
message(STATUS "plumbline: oneDNN ${dnnl_VERSION}")

# Header-only libraries that no installed header shows: used as system includes, not exported.
add_library(plumb_eigen INTERFACE)
target_include_directories(plumb_eigen SYSTEM INTERFACE
  $<TARGET_PROPERTY:Eigen3::Eigen,INTERFACE_INCLUDE_DIRECTORIES>)
add_library(plumb_json INTERFACE)
target_include_directories(plumb_json SYSTEM INTERFACE
  $<TARGET_PROPERTY:nlohmann_json::nlohmann_json,INTERFACE_INCLUDE_DIRECTORIES>)
