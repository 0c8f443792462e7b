# What a program includes: <plumbline/core/tensor.h>, where the rooms are links to the sources', and <plumbline.h>, which has
# every public header and is written at configure time. Headers find each other by their places ("../core/error.h"): no
# folder of a program's own, whatever it is called, comes in between.
set(PLUMB_GENERATED_INCLUDE ${CMAKE_CURRENT_BINARY_DIR}/include)
set(public_headers)
file(MAKE_DIRECTORY ${PLUMB_GENERATED_INCLUDE}/plumbline)
foreach(room IN LISTS rooms)
  file(GLOB found RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS ${room}/*.h)
  list(APPEND public_headers ${found})
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR}/${room} ${PLUMB_GENERATED_INCLUDE}/plumbline/${room} SYMBOLIC)
endforeach()
set(umbrella "// plumbline ${PROJECT_VERSION}: everything that is public.\n#pragma once\n\n#define PLUMB_VERSION \"${PROJECT_VERSION}\"\n\n")
foreach(header IN LISTS public_headers)
  string(APPEND umbrella "#include \"plumbline/${header}\"\n")
endforeach()
file(CONFIGURE OUTPUT ${PLUMB_GENERATED_INCLUDE}/plumbline.h CONTENT "${umbrella}" @ONLY)
