# heddle_library(NAME [QUICK] [WHOLE] [PUBLIC deps...] [PRIVATE deps...] [ALONE sources...] [EXCEPT folder])
# The library heddle_NAME from every .cc in the calling folder (and its sub-folders, but one); those ALONE are compiled
# by themselves. Its public headers are include/heddle/NAME/*.h. Only linked libraries' headers are visible, so an
# upward include does not compile. QUICK compiles it with -O1, in two thirds of the time: for libraries that no
# benchmark shows to be slower so, because they wait for engines, sockets and people. WHOLE compiles all rooms as one
# file: for libraries that are seldom edited.
# A folder of headers alone is an interface library: it still carries its include path and dependencies.

# heddle_unity(TARGET [WHOLE] [ALONE sources...])
# Compiles each room of the target (the sources of one folder) as one file, except ALONE: reading headers is most of the
# compile time. The names that sources of a room keep to themselves must differ. Sources still
# include what they use: -DHEDDLE_UNITY=OFF compiles each by itself.
function(heddle_unity target)
  cmake_parse_arguments(UNITY "WHOLE" "" "ALONE" ${ARGN})
  if(NOT HEDDLE_UNITY)
    return()
  endif()
  set_source_files_properties(${UNITY_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  if(UNITY_WHOLE)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    cmake_path(GET source PARENT_PATH room)
    cmake_path(RELATIVE_PATH room BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    string(MAKE_C_IDENTIFIER "${room}" room)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP "${room}")
  endforeach()
endfunction()

function(heddle_library name)
  cmake_parse_arguments(ARG "QUICK;WHOLE" "" "PUBLIC;PRIVATE;ALONE;EXCEPT" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  if(ARG_EXCEPT)
    list(FILTER sources EXCLUDE REGEX "^${CMAKE_CURRENT_SOURCE_DIR}/${ARG_EXCEPT}/")
  endif()
  set_property(GLOBAL APPEND PROPERTY HEDDLE_LIBRARIES ${name})
  if(NOT sources)
    add_library(heddle_${name} INTERFACE)
    target_include_directories(heddle_${name} INTERFACE $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>)
    target_link_libraries(heddle_${name} INTERFACE ${ARG_PUBLIC})
    return()
  endif()
  add_library(heddle_${name} STATIC ${sources})
  target_include_directories(heddle_${name}
    PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>
    PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(heddle_${name} PUBLIC ${ARG_PUBLIC}
    PRIVATE $<BUILD_INTERFACE:heddle_options> ${ARG_PRIVATE})
  target_compile_features(heddle_${name} PUBLIC cxx_std_20)
  if(ARG_QUICK)
    target_compile_options(heddle_${name} PRIVATE -O1)
  endif()
  set(whole "")
  if(ARG_WHOLE)
    set(whole WHOLE)
  endif()
  heddle_unity(heddle_${name} ${whole} ALONE ${ARG_ALONE})
endfunction()

# heddle_test(FOLDER deps...)  One GoogleTest program from tests/FOLDER/*.cc; each test is a CTest test, with
# HEDDLE_TEST_PROPERTIES beside the usual ones. Nothing runs beside those of HEDDLE_TESTS_ALONE (GoogleTest's filter),
# which live with real clocks.
function(heddle_test folder)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cc)
  foreach(dependency ${ARGN})
    if(NOT TARGET ${dependency})
      message(STATUS "tests/${folder} is left out: there is no target ${dependency}")
      return()
    endif()
  endforeach()
  if(NOT sources)
    return()
  endif()
  add_executable(${folder}_tests ${sources})
  target_include_directories(${folder}_tests PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  # Tests spend their time in the libraries: compiling them quickly matters more than running them fast.
  target_compile_options(${folder}_tests PRIVATE -O1)
  target_compile_definitions(${folder}_tests PRIVATE HEDDLE_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  target_link_libraries(${folder}_tests PRIVATE heddle_options ${ARGN} GTest::gmock GTest::gtest_main)
  heddle_unity(${folder}_tests)
  set(usual TEST_PREFIX ${folder}. DISCOVERY_TIMEOUT 60)
  set(properties PROPERTIES TIMEOUT 900 ${HEDDLE_TEST_PROPERTIES})
  if(HEDDLE_TESTS_ALONE)
    gtest_discover_tests(${folder}_tests ${usual} TEST_FILTER ${HEDDLE_TESTS_ALONE} ${properties} RUN_SERIAL ON)
    set(usual ${usual} TEST_FILTER -${HEDDLE_TESTS_ALONE})
  endif()
  gtest_discover_tests(${folder}_tests ${usual} ${properties})
endfunction()
