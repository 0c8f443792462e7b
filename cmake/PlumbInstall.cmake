# cmake --install, relocatable, and find_package(plumbline).
if(NOT PLUMB_INSTALL)
  return()
endif()
include(CMakePackageConfigHelpers)
set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/plumbline)
install(TARGETS plumbline EXPORT plumbline-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
foreach(header IN LISTS public_headers)
  cmake_path(GET header PARENT_PATH folder)
  install(FILES ${CMAKE_CURRENT_SOURCE_DIR}/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/plumbline/${folder})
endforeach()
file(GLOB functors CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/kernels/functors/*.h)
install(FILES ${functors} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/plumbline/kernels/functors)
install(FILES ${PLUMB_GENERATED_INCLUDE}/plumbline.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/plumbline)
install(EXPORT plumbline-targets NAMESPACE plumbline:: DESTINATION ${config_dir})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/plumbline-config.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/plumbline-config.cmake INSTALL_DESTINATION ${config_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/plumbline-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/plumbline-config.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/plumbline-config-version.cmake DESTINATION ${config_dir})
if(TARGET plumb)
  install(TARGETS plumb RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
