#pragma once

#include <string>
#include <vector>

#include "graph/onnx_writer.h"

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

}  // namespace heddle::test
