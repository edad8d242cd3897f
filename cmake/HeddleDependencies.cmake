# Third-party packages: Debian's through find_package, Python wheels through the local environment.
find_package(Threads REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(fmt REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(CLI11 REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(Protobuf REQUIRED)
if(HEDDLE_TESTS)
  find_package(GTest REQUIRED)
endif()

# Optional: plans over several hosts.
option(HEDDLE_MPI "plans over several hosts by MPI, where it is installed" ON)
if(HEDDLE_MPI)
  find_package(MPI COMPONENTS C)
endif()

set(HEDDLE_VENV ${CMAKE_SOURCE_DIR}/.venv CACHE PATH "local Python environment with the pinned wheels")
file(GLOB HEDDLE_SITE_PACKAGES LIST_DIRECTORIES true ${HEDDLE_VENV}/lib/python3*/site-packages)
if(NOT HEDDLE_SITE_PACKAGES)
  message(FATAL_ERROR "no Python environment at ${HEDDLE_VENV}: run `make setup`")
endif()

set(OpenVINO_DIR ${HEDDLE_SITE_PACKAGES}/openvino/cmake CACHE PATH "OpenVINO's CMake files")
find_package(OpenVINO REQUIRED COMPONENTS Runtime)
