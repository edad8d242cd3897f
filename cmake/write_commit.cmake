# cmake -DOUT=FILE -P write_commit.cmake  Writes the checkout's commit as a C++ string: "1a2b3c4d5e6f", with "+" if
# files differ from it, or "" without git. Leaves the file alone if it is right.
get_filename_component(checkout ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
set(commit "")
find_program(git git)
# A copy of the sources inside another project's checkout has none.
if(git AND EXISTS ${checkout}/.git)
  execute_process(COMMAND ${git} -C ${checkout} describe --always --abbrev=12 --exclude=* --dirty=+
                  OUTPUT_VARIABLE commit ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT "\"${commit}\"\n" @ONLY)
