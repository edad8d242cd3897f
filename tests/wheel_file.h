// Models that the wheels in the local environment bring along.
#pragma once

#include <filesystem>
#include <string>

namespace heddle {

// A file of the wheels in the local environment; "" when it is not there.
inline std::string wheel_file(const std::string& name) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (const auto& python : fs::directory_iterator(fs::path(HEDDLE_SOURCE_DIR) / ".venv/lib", error)) {
    const auto file = python.path() / "site-packages" / name;
    if (fs::exists(file)) return file.string();
  }
  return "";
}

// One of the models of the wheels onnx and rapidocr-onnxruntime; "" when it is not there.
inline std::string wheel_model(const std::string& name) {
  for (const char* folder : {"onnx/backend/test/data/light/", "rapidocr_onnxruntime/models/"}) {
    if (auto file = wheel_file(folder + name); !file.empty()) return file;
  }
  return "";
}

}  // namespace heddle
