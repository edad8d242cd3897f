// Files of the Python wheels that Heddle uses: libraries that it loads at run time, and models.
#pragma once

#include <string>

#include "heddle/base/status.h"

namespace heddle {

// The absolute path of a file or folder of a wheel, given as in site-packages: "onnx/backend/test/data/light". A last
// part that ends in `*` is a prefix: "onnxruntime/capi/libonnxruntime.so.*" is the first such name.
//
// Nothing depends on where Heddle was built. The places are, in order:
//  - site-packages around the package `heddle` that holds this code;
//  - lib/heddle of the prefix in which this code is installed;
//  - the folder that holds the OpenVINO which this process has loaded (a program that links an installed Heddle);
//  - the environment that a build folder was configured with, if this code lies in it;
//  - the folder that the environment variable HEDDLE_SITE_PACKAGES names.
// kNotFound names them all. Thread-safe.
Result<std::string> find_in_wheels(const std::string& path);

}  // namespace heddle
