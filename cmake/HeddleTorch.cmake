# libtorch for the backend torch (HEDDLE_TORCH=ON): headers and libraries of a PyPI installation of torch or of Debian's
# package libtorch-dev. Only its C++ tensor library is used; its own CMake files look for much else and are left alone.
# HEDDLE_TORCH_ROOT names an installation (the folder of the Python package, with include/ and lib/); without it those
# of HEDDLE_TORCH_PYTHON, of the local environment and of python3 are tried, then the system's.
set(HEDDLE_TORCH_ROOT "" CACHE PATH "an installation of libtorch: a folder with include/ and lib/")
set(HEDDLE_TORCH_PYTHON "$ENV{HEDDLE_TORCH_PYTHON}" CACHE FILEPATH "a Python that imports torch")

# The folder of the Python package torch and whether it was built with the C++11 string ABI.
function(heddle_python_torch python root abi)
  string(CONCAT program
    "import os, torch\n"
    "print(os.path.dirname(os.path.dirname(torch.utils.cmake_prefix_path)))\n"
    "print(int(torch.compiled_with_cxx11_abi()))\n")
  execute_process(
    COMMAND ${python} -c "${program}"
    OUTPUT_VARIABLE text ERROR_QUIET RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(failed)
    set(${root} "" PARENT_SCOPE)
    return()
  endif()
  string(REPLACE "\n" ";" lines "${text}")
  list(GET lines 0 first)
  list(GET lines 1 second)
  set(${root} "${first}" PARENT_SCOPE)
  set(${abi} "${second}" PARENT_SCOPE)
endfunction()

set(root "${HEDDLE_TORCH_ROOT}")
if(NOT root)
  foreach(python "${HEDDLE_TORCH_PYTHON}" "${HEDDLE_VENV}/bin/python" python3)
    if(python AND NOT root)
      heddle_python_torch("${python}" root abi)
      if(root AND abi STREQUAL "0")
        message(FATAL_ERROR "the torch in ${root} was built with the former string ABI of C++, which OpenVINO's does "
                            "not link with: install torch 2.7 or later, or set HEDDLE_TORCH_ROOT to another libtorch")
      endif()
    endif()
  endforeach()
endif()
unset(HEDDLE_TORCH_INCLUDE CACHE)
unset(HEDDLE_TORCH_CPU_LIBRARY CACHE)
unset(HEDDLE_TORCH_C10_LIBRARY CACHE)
set(only_there "")
if(root)
  set(only_there NO_DEFAULT_PATH)
endif()
find_path(HEDDLE_TORCH_INCLUDE ATen/ATen.h HINTS ${root}/include ${only_there})
find_library(HEDDLE_TORCH_CPU_LIBRARY torch_cpu HINTS ${root}/lib ${only_there})
find_library(HEDDLE_TORCH_C10_LIBRARY c10 HINTS ${root}/lib ${only_there})
foreach(part INCLUDE CPU_LIBRARY C10_LIBRARY)
  if(NOT HEDDLE_TORCH_${part})
    message(FATAL_ERROR "HEDDLE_TORCH is on, but the header ATen/ATen.h, libtorch_cpu.so or libc10.so is not in "
                        "${root} (empty: the system's folders). Install libtorch with `apt-get install libtorch-dev` "
                        "(Debian) or `pip install torch` into .venv, or name an installation with "
                        "-DHEDDLE_TORCH_ROOT=DIR; or build without it: make build TORCH=0")
  endif()
endforeach()
message(STATUS "libtorch: ${HEDDLE_TORCH_CPU_LIBRARY}")

add_library(heddle_libtorch INTERFACE)
target_include_directories(heddle_libtorch SYSTEM INTERFACE ${HEDDLE_TORCH_INCLUDE})
target_link_libraries(heddle_libtorch INTERFACE ${HEDDLE_TORCH_CPU_LIBRARY} ${HEDDLE_TORCH_C10_LIBRARY})

# With CUDA where this libtorch has it and the headers of its toolkit are there: in the wheels that torch needs, or in
# /usr/local/cuda (HEDDLE_CUDA_ROOT names another). The driver is opened when the program first needs it.
set(HEDDLE_CUDA_ROOT "" CACHE PATH "an installation of CUDA's headers: a folder with include/")
unset(HEDDLE_TORCH_CUDA_LIBRARY CACHE)
unset(HEDDLE_TORCH_C10_CUDA_LIBRARY CACHE)
unset(HEDDLE_CUDA_INCLUDE CACHE)
set(HEDDLE_TORCH_CUDA OFF)
find_library(HEDDLE_TORCH_CUDA_LIBRARY torch_cuda HINTS ${root}/lib ${only_there})
find_library(HEDDLE_TORCH_C10_CUDA_LIBRARY c10_cuda HINTS ${root}/lib ${only_there})
if(NOT HEDDLE_TORCH_CUDA_LIBRARY OR NOT HEDDLE_TORCH_C10_CUDA_LIBRARY)
  message(STATUS "CUDA: this libtorch has none, devices are 'cpu'")
  return()
endif()
if(HEDDLE_CUDA_ROOT)
  set(cuda_folders ${HEDDLE_CUDA_ROOT}/include)
else()
  file(GLOB cuda_folders ${root}/../nvidia/cu[0-9]*/include ${root}/../nvidia/cuda_runtime/include)
  list(APPEND cuda_folders /usr/local/cuda/include)
endif()
find_path(HEDDLE_CUDA_INCLUDE NAMES cuda_runtime_api.h HINTS ${cuda_folders} NO_DEFAULT_PATH)
# The runtime library that libtorch's headers call; wheels have it under its full name alone.
set(cuda_runtime "")
if(HEDDLE_CUDA_INCLUDE)
  file(GLOB cuda_runtime ${HEDDLE_CUDA_INCLUDE}/../lib64/libcudart.so* ${HEDDLE_CUDA_INCLUDE}/../lib/libcudart.so*)
endif()
if(NOT cuda_runtime OR NOT EXISTS ${HEDDLE_CUDA_INCLUDE}/cuda.h)
  message(STATUS "CUDA: libtorch has it, but cuda.h, cuda_runtime_api.h and libcudart.so are not in and beside "
                 "${cuda_folders}; devices are 'cpu' (set HEDDLE_CUDA_ROOT to a CUDA toolkit)")
  return()
endif()
list(GET cuda_runtime 0 cuda_runtime)
get_filename_component(cuda_runtime ${cuda_runtime} REALPATH)
message(STATUS "CUDA: ${HEDDLE_TORCH_CUDA_LIBRARY}, headers in ${HEDDLE_CUDA_INCLUDE}")
set(HEDDLE_TORCH_CUDA ON)
target_include_directories(heddle_libtorch SYSTEM INTERFACE ${HEDDLE_CUDA_INCLUDE})
# Nobody calls most of libtorch_cuda.so by name: its kernels register themselves when it is loaded. Its own libraries
# are found by its own search path, not the linker's.
target_link_options(heddle_libtorch INTERFACE LINKER:--allow-shlib-undefined)
target_link_libraries(heddle_libtorch INTERFACE
  "-Wl,--push-state,--no-as-needed,${HEDDLE_TORCH_CUDA_LIBRARY},--pop-state"
  ${HEDDLE_TORCH_C10_CUDA_LIBRARY} ${cuda_runtime})
