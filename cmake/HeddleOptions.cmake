# Warnings, sanitizers and the compiler cache, for every target alike.
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)  # base_dir makes a clone in another folder hit the same cache
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE_PROGRAM})
endif()

# The libraries become part of the Python module, too. Hidden names are called directly even so, as in a program.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

# -O3 takes a tenth more compile time. The benchmarks show a gain for the fleet's simulator alone, which keeps it.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

option(HEDDLE_UNITY "compile a library's sources in few, large pieces" ON)

add_library(heddle_options INTERFACE)
target_compile_options(heddle_options INTERFACE -Wall -Wextra -Wpedantic -Wno-missing-field-initializers)
if(NOT HEDDLE_UNITY)  # in a room's file, a constant of one source may have the name of another one's local
  target_compile_options(heddle_options INTERFACE -Wshadow)
endif()
# Clang compiles with sanitizers in less than half of the time that GCC takes. One build serves tests and fuzz targets.
set(sanitize "")
if(HEDDLE_SANITIZE_ADDRESS)
  set(sanitize -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=undefined)
  target_compile_definitions(heddle_options INTERFACE HEDDLE_ADDRESS_SANITIZER)
  set(program $<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>)
  target_sources(heddle_options INTERFACE $<${program}:${CMAKE_SOURCE_DIR}/tests/support/loaded_libraries.cc>)
elseif(HEDDLE_SANITIZE_THREAD)
  set(sanitize -fsanitize=thread)
  target_compile_definitions(heddle_options INTERFACE HEDDLE_THREAD_SANITIZER)
endif()
if(sanitize)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "the sanitizers need clang, this is ${CMAKE_CXX_COMPILER_ID}: use the presets debug and tsan")
  endif()
  target_compile_options(heddle_options INTERFACE ${sanitize} -fno-omit-frame-pointer)
  target_link_options(heddle_options INTERFACE ${sanitize})
endif()
# GCC 12 warns wrongly inside std::string and std::variant when it inlines them.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(heddle_options INTERFACE -Wno-restrict -Wno-maybe-uninitialized
                         -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds)
  # A room's file has about a gigabyte of syntax tree. Collecting it again and again took 6 to 8 % of the compile time.
  target_compile_options(heddle_options INTERFACE --param=ggc-min-expand=500 --param=ggc-min-heapsize=1000000)
endif()
