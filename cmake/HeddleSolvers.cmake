# The solvers come as Python wheels: HiGHS from highsbox (a C++ SDK of which only the C interface is used: the library
# is built with the old string ABI), CP-SAT from ortools (a shared library that is loaded at run time, never linked,
# because it brings its own protobuf).
set(HEDDLE_HIGHS_ROOT ${HEDDLE_SITE_PACKAGES}/highsbox/highs_dist)
set(HEDDLE_HIGHS_LIBRARY ${HEDDLE_HIGHS_ROOT}/lib/libhighs.so)
if(NOT EXISTS ${HEDDLE_HIGHS_LIBRARY} OR NOT EXISTS ${HEDDLE_HIGHS_ROOT}/include/highs/interfaces/highs_c_api.h)
  message(FATAL_ERROR "HiGHS is not in ${HEDDLE_HIGHS_ROOT} (expected lib/libhighs.so and its headers): "
                      "run `make setup`, which installs the wheel highsbox")
endif()
if(NOT TARGET highs::c)
  add_library(highs::c SHARED IMPORTED GLOBAL)
  set_target_properties(highs::c PROPERTIES IMPORTED_LOCATION ${HEDDLE_HIGHS_LIBRARY} IMPORTED_SONAME libhighs.so)
  target_include_directories(highs::c INTERFACE ${HEDDLE_HIGHS_ROOT}/include/highs ${HEDDLE_HIGHS_ROOT}/include)
endif()

file(GLOB HEDDLE_ORTOOLS_LIBRARY ${HEDDLE_SITE_PACKAGES}/ortools/.libs/libortools.so.*)
list(LENGTH HEDDLE_ORTOOLS_LIBRARY count)
if(NOT count EQUAL 1)
  message(FATAL_ERROR "found ${count} files libortools.so.* in ${HEDDLE_SITE_PACKAGES}/ortools/.libs, expected one: "
                      "run `make setup`, which installs the wheel ortools")
endif()
file(GLOB info LIST_DIRECTORIES true ${HEDDLE_SITE_PACKAGES}/ortools-*.dist-info)
string(REGEX REPLACE "^.*/ortools-([0-9.]+)\\.dist-info$" "\\1" HEDDLE_ORTOOLS_VERSION "${info}")
