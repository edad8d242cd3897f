// Models that the wheels in the local environment bring along.
#pragma once

#include <string>

#include "heddle/base/wheels.h"

namespace heddle {

// A file of the wheels in the local environment; "" when it is not there.
inline std::string wheel_file(const std::string& name) {
  const auto found = find_in_wheels(name);
  return found.ok() ? *found : "";
}

// One of the models of the wheels onnx and rapidocr-onnxruntime; "" when it is not there.
inline std::string wheel_model(const std::string& name) {
  for (const char* folder : {"onnx/backend/test/data/light/", "rapidocr_onnxruntime/models/"}) {
    if (auto file = wheel_file(folder + name); !file.empty()) return file;
  }
  return "";
}

}  // namespace heddle
