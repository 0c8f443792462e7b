# What the library is built on. oneDNN 2.x calls its package dnnl, 3.x may call it either way.
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(dnnl CONFIG REQUIRED)
find_package(Eigen3 3.4 CONFIG REQUIRED)
find_package(nlohmann_json 3.9 CONFIG REQUIRED)

# Header-only libraries that no installed header shows: used as system includes, not exported.
add_library(plumb_eigen INTERFACE)
target_include_directories(plumb_eigen SYSTEM INTERFACE
  $<TARGET_PROPERTY:Eigen3::Eigen,INTERFACE_INCLUDE_DIRECTORIES>)
add_library(plumb_json INTERFACE)
target_include_directories(plumb_json SYSTEM INTERFACE
  $<TARGET_PROPERTY:nlohmann_json::nlohmann_json,INTERFACE_INCLUDE_DIRECTORIES>)
