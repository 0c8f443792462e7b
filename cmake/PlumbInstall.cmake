# cmake --install, relocatable, and find_package(plumbline).
if(NOT PLUMB_INSTALL)
  return()
endif()
include(CMakePackageConfigHelpers)
set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/plumbline)

install(TARGETS plumbline EXPORT plumbline-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT plumbline-targets NAMESPACE plumbline:: DESTINATION ${config_dir})
set(plumbline_CUDA OFF)
if(PLUMB_HAS_CUDA)
  set(plumbline_CUDA ON)
elseif(PLUMB_CUDA STREQUAL "EMULATED")
  set(plumbline_CUDA EMULATED)
endif()
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/plumbline-config.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/plumbline-config.cmake INSTALL_DESTINATION ${config_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/plumbline-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/plumbline-config.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/plumbline-config-version.cmake DESTINATION ${config_dir})

# Headers keep their folders; the umbrella header stands above them.
file(GLOB functors RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS kernels/functors/*.h)
# What kernels of CUDA are written with; the umbrella header has none of it.
set(for_kernels kernels/cuda/language.h kernels/cuda/element.h kernels/cuda/launch.h kernels/cuda/divide.h
  kernels/cuda/emulator/language.h)
foreach(header IN LISTS public_headers functors for_kernels)
  cmake_path(GET header PARENT_PATH folder)
  install(FILES ${CMAKE_CURRENT_SOURCE_DIR}/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/plumbline/${folder})
endforeach()
install(FILES ${PLUMB_GENERATED_INCLUDE}/plumbline.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
# With all that the README and its pages link to, in the same folders. Of the results, the reports without their numbers.
install(FILES LICENSE README.md CHANGELOG.md CONTRIBUTING.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs examples DESTINATION ${CMAKE_INSTALL_DOCDIR}
  FILES_MATCHING PATTERN *.md PATTERN *.cpp PATTERN *.html PATTERN *.svg PATTERN snake.* REGEX "own_model/CMakeLists.txt$")

install(FILES bench/compare/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/bench/compare)

if(TARGET plumb)
  set_target_properties(plumb PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)  # a oneDNN outside of the system's folders
  install(TARGETS plumb RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  if(TARGET plumb_standin_driver)
    install(TARGETS plumb_standin_driver LIBRARY DESTINATION ${PLUMB_STANDIN_FOLDER})
  endif()
endif()
