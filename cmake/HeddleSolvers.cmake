# The solvers come as Python wheels: HiGHS from highspy (its library is copied under a name of its own and linked),
# CP-SAT from ortools (loaded at run time, apart from everything else in the process).
set(HEDDLE_HIGHS_WHEEL ${HEDDLE_SITE_PACKAGES}/highspy/libhighs.so.1)
set(HEDDLE_HIGHS_LIBRARY ${CMAKE_BINARY_DIR}/lib/libhighs_h.so)
# src/solve/highs_api.h declares the interface of this release.
if(NOT EXISTS ${HEDDLE_HIGHS_WHEEL} OR NOT EXISTS ${HEDDLE_SITE_PACKAGES}/highspy-1.15.1.dist-info)
  message(FATAL_ERROR "HiGHS 1.15.1 is not in ${HEDDLE_SITE_PACKAGES}/highspy: run `make setup`, which installs the "
                      "wheel highspy")
endif()
execute_process(
  COMMAND ${HEDDLE_VENV}/bin/python ${CMAKE_SOURCE_DIR}/cmake/private_library.py
          ${HEDDLE_HIGHS_WHEEL} ${HEDDLE_HIGHS_LIBRARY}
  COMMAND_ERROR_IS_FATAL ANY)
add_library(highs::c SHARED IMPORTED GLOBAL)
set_target_properties(highs::c PROPERTIES IMPORTED_LOCATION ${HEDDLE_HIGHS_LIBRARY} IMPORTED_SONAME libhighs_h.so)

file(GLOB HEDDLE_ORTOOLS_LIBRARY ${HEDDLE_SITE_PACKAGES}/ortools/.libs/libortools.so.*)
list(LENGTH HEDDLE_ORTOOLS_LIBRARY count)
if(NOT count EQUAL 1)
  message(FATAL_ERROR "found ${count} files libortools.so.* in ${HEDDLE_SITE_PACKAGES}/ortools/.libs, expected one: "
                      "run `make setup`, which installs the wheel ortools")
endif()
file(GLOB info LIST_DIRECTORIES true ${HEDDLE_SITE_PACKAGES}/ortools-*.dist-info)
string(REGEX REPLACE "^.*/ortools-([0-9.]+)\\.dist-info$" "\\1" HEDDLE_ORTOOLS_VERSION "${info}")
