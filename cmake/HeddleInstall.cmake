# What `make install` installs. Nothing in it names a folder of the checkout, and a moved prefix works.
#   bin/heddle                      the program
#   share/                          completion for shells, the manual page, licences
#   lib/heddle/                     the libraries of wheels, as in their site-packages
#   lib/libheddle_*.a, include/, lib/cmake/Heddle/   for find_package(Heddle)
# Components: program, wheels (the libraries of wheels), development.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Installed programs and libraries find the libraries of wheels beside themselves. In a prefix these are in lib/heddle.
# In site-packages everything of Heddle is below heddle/, and the wheels lie around it. Set before any target is made.
set(CMAKE_INSTALL_RPATH
  "$ORIGIN/../lib/heddle/highspy" "$ORIGIN/../lib/heddle/openvino/libs"
  "$ORIGIN" "$ORIGIN/.." "$ORIGIN/../openvino/libs" "$ORIGIN/../../openvino/libs")

# The libraries of wheels and their licences. Python's own frontends of OpenVINO are left out.
function(heddle_install_wheels)
  set(to lib/heddle)
  install(FILES ${HEDDLE_HIGHS_LIBRARY} DESTINATION ${to}/highspy COMPONENT wheels)
  install(DIRECTORY ${HEDDLE_SITE_PACKAGES}/openvino/libs DESTINATION ${to}/openvino COMPONENT wheels
          PATTERN "*_pytorch_frontend*" EXCLUDE PATTERN "*_jax_frontend*" EXCLUDE PATTERN "*.pc" EXCLUDE)
  install(DIRECTORY ${HEDDLE_SITE_PACKAGES}/ortools/.libs DESTINATION ${to}/ortools COMPONENT wheels)
  install(DIRECTORY ${HEDDLE_SITE_PACKAGES}/ortools.libs DESTINATION ${to} COMPONENT wheels)
  install(DIRECTORY ${HEDDLE_SITE_PACKAGES}/onnxruntime/capi DESTINATION ${to}/onnxruntime COMPONENT wheels
          FILES_MATCHING PATTERN "libonnxruntime*.so*" PATTERN "__pycache__" EXCLUDE)
  foreach(wheel openvino ortools highspy)
    file(GLOB licences ${HEDDLE_SITE_PACKAGES}/${wheel}-*.dist-info/licenses)
    install(DIRECTORY ${licences}/ DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/heddle/${wheel} COMPONENT wheels)
  endforeach()
  install(FILES ${HEDDLE_SITE_PACKAGES}/onnxruntime/LICENSE ${HEDDLE_SITE_PACKAGES}/onnxruntime/ThirdPartyNotices.txt
          DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/heddle/onnxruntime COMPONENT wheels)
endfunction()

# Static libraries, headers and the CMake package.
function(heddle_install_development)
  get_property(libraries GLOBAL PROPERTY HEDDLE_LIBRARIES)
  list(REMOVE_ITEM libraries bench command)
  set(targets "")
  foreach(library ${libraries})
    list(APPEND targets heddle_${library})
    set_target_properties(heddle_${library} PROPERTIES EXPORT_NAME ${library})
    install(DIRECTORY src/${library}/include/heddle DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
  endforeach()
  install(TARGETS ${targets} heddle_cp_sat_messages heddle_open_inference heddle_worker_protocol EXPORT HeddleTargets
          ARCHIVE DESTINATION lib COMPONENT development INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  set(to lib/cmake/Heddle)
  install(EXPORT HeddleTargets NAMESPACE heddle:: DESTINATION ${to} COMPONENT development)
  set(package ${CMAKE_BINARY_DIR}/package)
  get_target_property(openvino openvino::runtime IMPORTED_LOCATION_RELEASE)
  get_filename_component(HEDDLE_OPENVINO_NAME ${openvino} NAME)
  # The bus on NATS is found by pkg-config (src/serve).
  set(HEDDLE_FIND_NATS "")
  get_target_property(links heddle_serve LINK_LIBRARIES)
  if("PkgConfig::NATS" IN_LIST links)
    set(HEDDLE_FIND_NATS "find_dependency(PkgConfig)\npkg_check_modules(NATS REQUIRED IMPORTED_TARGET libnats)")
  endif()
  configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/HeddleConfig.cmake.in ${package}/HeddleConfig.cmake
                                INSTALL_DESTINATION ${to})
  write_basic_package_version_file(${package}/HeddleConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${package}/HeddleConfig.cmake ${package}/HeddleConfigVersion.cmake DESTINATION ${to}
          COMPONENT development)
endfunction()

# The built program writes its completion scripts and its manual page where they are installed. In the build folder
# two installations at once would write the same files.
function(heddle_install_texts)
  set(share ${CMAKE_INSTALL_DATAROOTDIR})
  foreach(text "completion bash=bash-completion/completions/heddle" "completion zsh=zsh/site-functions/_heddle"
          "completion fish=fish/vendor_completions.d/heddle.fish" "man=man/man1/heddle.1")
    string(REGEX MATCH "^(.*)=(.*)/(.*)$" matched ${text})
    set(to ${share}/${CMAKE_MATCH_2})
    set(name ${CMAKE_MATCH_3})
    separate_arguments(words UNIX_COMMAND "${CMAKE_MATCH_1}")
    list(JOIN words "\" \"" words)
    install(CODE "
      set(folder \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${to}\")
      file(MAKE_DIRECTORY \"\${folder}\")
      execute_process(COMMAND \"$<TARGET_FILE:heddle>\" \"${words}\"
                      OUTPUT_FILE \"\${folder}/${name}\" COMMAND_ERROR_IS_FATAL ANY)
      file(CHMOD \"\${folder}/${name}\" PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
      list(APPEND CMAKE_INSTALL_MANIFEST_FILES \"\${CMAKE_INSTALL_PREFIX}/${to}/${name}\")" COMPONENT program)
  endforeach()
endfunction()

function(heddle_install)
  install(TARGETS heddle RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
  install(FILES LICENSE NOTICE DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/heddle COMPONENT program)
  heddle_install_texts()
  heddle_install_wheels()
  # libtorch stays where it is: what links it depends on this machine.
  if(HEDDLE_TORCH)
    get_filename_component(libtorch ${HEDDLE_TORCH_CPU_LIBRARY} DIRECTORY)
    set_property(TARGET heddle APPEND PROPERTY INSTALL_RPATH ${libtorch})
    message(STATUS "an installation of this build has no C++ libraries: it has the backend torch")
  else()
    heddle_install_development()
  endif()
endfunction()
