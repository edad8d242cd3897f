#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "graph/onnx_writer.h"
#include "heddle/session/session.h"

namespace heddle::test {

// Two products with a rectifier between them; the batch size is open.
inline std::string small_model() {
  using namespace onnx_writer;
  const auto weights = [](const char* name, int64_t rows, int64_t columns) {
    std::vector<float> values(static_cast<size_t>(rows * columns));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 101) / 101 - 0.5F;
    return float_tensor(name, {rows, columns}, values);
  };
  return model({{node("MatMul", {"x", "w"}, {"m"}, "first"), node("Relu", {"m"}, {"r"}, "relu"),
                 node("MatMul", {"r", "v"}, {"y"}, "second")},
                {value("x", {-1, 64})},
                {value("y", {-1, 32})},
                {weights("w", 64, 48), weights("v", 48, 32)}});
}

// A folder with the small model and a profile store of its own.
class SmallModelTest : public testing::Test {
 protected:
  void SetUp() override {
    static std::atomic<int> number{0};
    folder_ = std::filesystem::temp_directory_path() /
              ("heddle-session-" + std::to_string(::getpid()) + "-" + std::to_string(++number));
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "model.onnx", std::ios::binary) << small_model();
    settings_.store = (folder_ / "store.sqlite").string();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  ModelSpec model() const {
    ModelSpec spec{.path = (folder_ / "model.onnx").string(), .import = {}};
    spec.import.batch = 1;
    return spec;
  }

  std::filesystem::path folder_;
  ProblemSettings settings_;
};

}  // namespace heddle::test
