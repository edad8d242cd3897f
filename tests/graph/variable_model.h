// OpenVINO's models with a variable, written as text: y = v + x, after which v is y.
#pragma once

#include <string>

#include "model_files.h"
#include "onnx_writer.h"

namespace heddle {

struct VariableModel {
  enum class Begins { kUnknown, kConstant, kComputed };
  Begins begins = Begins::kConstant;  // with no value given, the constants (3, 3), or x
  bool assigned = true;
  bool grows = false;  // y = (v, x) instead: longer than v
};

// The path of the .xml file, with its .bin.
inline std::string write_variable_model(const TestFolder& folder, const std::string& name,
                                        const VariableModel& m = {}) {
  const std::string dims = "<dim>1</dim><dim>2</dim></port>";
  const auto port = [&dims](int id, const std::string& names = "") {
    return "<port id=\"" + std::to_string(id) + "\" precision=\"FP32\"" +
           (names.empty() ? "" : " names=\"" + names + "\"") + ">" + dims;
  };
  const auto layer = [](int id, const std::string& type, int opset, const std::string& data,
                        const std::string& in, const std::string& out) {
    return "<layer id=\"" + std::to_string(id) + "\" name=\"" + (id == 0 ? "x" : type + std::to_string(id)) +
           "\" type=\"" + type + "\" version=\"opset" + std::to_string(opset) + "\">" +
           (data.empty() ? "" : "<data " + data + "/>") + (in.empty() ? "" : "<input>" + in + "</input>") +
           (out.empty() ? "" : "<output>" + out + "</output>") + "</layer>";
  };
  const auto edge = [](int from, int port_from, int to, int port_to) {
    return "<edge from-layer=\"" + std::to_string(from) + "\" from-port=\"" + std::to_string(port_from) +
           "\" to-layer=\"" + std::to_string(to) + "\" to-port=\"" + std::to_string(port_to) + "\"/>";
  };
  const bool known = m.begins != VariableModel::Begins::kUnknown;
  const bool constant = m.begins == VariableModel::Begins::kConstant;
  std::string layers = layer(0, "Parameter", 1, R"(shape="1,2" element_type="f32")", "", port(0, "x"));
  if (constant)
    layers += layer(1, "Const", 1, R"(element_type="f32" shape="1, 2" offset="0" size="8")", "", port(0));
  layers += layer(
      2, "ReadValue", 6,
      R"(variable_id="v" variable_type="f32" variable_shape=")" + std::string(m.grows ? "1,?" : "1,2") + '"',
      known ? port(0) : "", port(1));
  layers += m.grows ? layer(3, "Concat", 1, R"(axis="1")", port(0) + port(1), port(2, "y"))
                    : layer(3, "Add", 1, R"(auto_broadcast="numpy")", port(0) + port(1), port(2, "y"));
  if (m.assigned) layers += layer(4, "Assign", 6, R"(variable_id="v")", port(0), port(1));
  layers += layer(5, "Result", 1, "", port(0), "");
  std::string edges = edge(0, 0, 3, 1) + edge(2, 1, 3, 0) + edge(3, 2, 5, 0);
  if (known) edges += edge(constant ? 1 : 0, 0, 2, 0);
  if (m.assigned) edges += edge(3, 2, 4, 0);
  folder.write(name + ".bin", onnx_writer::raw_of(std::vector<float>{3, 3}));
  return folder.write(name + ".xml", "<?xml version=\"1.0\"?><net name=\"" + name +
                                         "\" version=\"11\"><layers>" + layers + "</layers><edges>" + edges +
                                         "</edges></net>");
}

}  // namespace heddle
