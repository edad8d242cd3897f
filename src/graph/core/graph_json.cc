#include "heddle/graph/graph_json.h"

#include <map>
#include <string_view>

#include "heddle/base/json.h"
#include "heddle/base/spelling.h"

namespace heddle {
namespace {

constexpr char kFormat[] = "heddle-graph";

// Limits far above any real model: they keep the memory use of a hostile file near its own size.
constexpr size_t kMaxItems = 20'000'000;  // ops, inputs, parameters
constexpr size_t kMaxPerOp = 1'000'000;   // entries of one op's lists
constexpr size_t kMaxNameBytes = 64 << 10;

// ---------------------------------------------------------------------------------------------- writing

Json tensor_to_json(const Tensor& tensor) {
  Json json;
  json["name"] = tensor.name;
  json["dtype"] = dtype_name(tensor.dtype);
  json["shape"] = tensor.shape;
  if (tensor_bytes(tensor.dtype, tensor.shape) != tensor.bytes) json["bytes"] = tensor.bytes;
  return json;
}

Json op_to_json(const Graph& graph, const Op& op) {
  Json json;
  json["name"] = op.name;
  json["type"] = op.type;
  json["inputs"] = Json::array();
  for (const TensorId input : op.inputs) json["inputs"].push_back(graph.tensor(input).name);
  json["outputs"] = Json::array();
  for (const TensorId output : op.outputs) json["outputs"].push_back(tensor_to_json(graph.tensor(output)));
  for (const ParamId param : op.params) json["params"].push_back(graph.param(param).name);
  json["flops"] = op.flops;
  json["bytes_accessed"] = op.bytes_accessed;
  if (op.utilization != 1) json["utilization"] = op.utilization;
  for (const GivenTime& time : op.given_times) json["given_times"][time.device_class] = time.us;
  if (!op.onnx_names.empty()) json["onnx_names"] = op.onnx_names;
  for (const OpId member : op.members) json["members"].push_back(member.value);
  return json;
}

// Per graph input, the number of ops whose outputs have smaller tensor ids.
std::vector<int64_t> ops_before_inputs(const Graph& graph) {
  std::vector<int64_t> result;
  size_t op = 0;
  for (const TensorId input : graph.inputs()) {
    // An op without outputs is grouped with the ops after it: it has no tensor ids to order it by.
    size_t before = op;
    for (; op < graph.num_ops(); ++op) {
      const auto& outputs = graph.op(OpId(op)).outputs;
      if (outputs.empty()) continue;
      if (outputs.front() > input) break;
      before = op + 1;
    }
    op = before;
    result.push_back(static_cast<int64_t>(before));
  }
  return result;
}

// ---------------------------------------------------------------------------------------------- reading

Result<std::string> read_name(const JsonCursor& cursor, std::string_view key) {
  HEDDLE_ASSIGN_OR_RETURN(const auto member, cursor.at(key));
  HEDDLE_ASSIGN_OR_RETURN(auto name, member.as_string());
  if (name.size() > kMaxNameBytes)
    return member.error("a name has at most " + std::to_string(kMaxNameBytes) + " bytes, this one " +
                        std::to_string(name.size()));
  return name;
}

// The elements of an optional array.
Result<std::vector<JsonCursor>> read_list(const JsonCursor& cursor, std::string_view key, size_t max_size) {
  if (!cursor.has(key)) return std::vector<JsonCursor>();
  HEDDLE_ASSIGN_OR_RETURN(const auto list, cursor.at(key));
  return list.elements(max_size);
}

// The caller checks the keys of `cursor`.
Result<Tensor> read_tensor(const JsonCursor& cursor) {
  Tensor tensor;
  HEDDLE_ASSIGN_OR_RETURN(tensor.name, read_name(cursor, "name"));
  HEDDLE_ASSIGN_OR_RETURN(const auto dtype_at, cursor.at("dtype"));
  HEDDLE_ASSIGN_OR_RETURN(const auto dtype_text, dtype_at.as_string());
  const auto dtype = dtype_from_name(dtype_text);
  if (!dtype)
    return dtype_at.error("unknown element type '" + dtype_text +
                          "'; expected one such as \"f32\" or \"i64\"");
  tensor.dtype = *dtype;
  HEDDLE_ASSIGN_OR_RETURN(const auto shape_at, cursor.at("shape"));
  HEDDLE_ASSIGN_OR_RETURN(tensor.shape, shape_at.as_ints(0, INT64_MAX));
  const auto bytes = tensor_bytes(tensor.dtype, tensor.shape);
  if (!bytes || *bytes > kMaxGraphBytes)
    return shape_at.error("a tensor of this shape has more than 2^60 bytes");
  // A shape with bytes must not be given 0 bytes, because 0 means "compute it".
  HEDDLE_ASSIGN_OR_RETURN(tensor.bytes, cursor.int_or("bytes", *bytes, *bytes > 0 ? 1 : 0, kMaxGraphBytes));
  return tensor;
}

class GraphReader {
 public:
  explicit GraphReader(const JsonCursor& cursor, std::string name)
      : cursor_(cursor), builder_(std::move(name)) {}

  Result<std::shared_ptr<const Graph>> run() {
    HEDDLE_RETURN_IF_ERROR(read_params());
    HEDDLE_RETURN_IF_ERROR(read_tensors_and_ops());
    HEDDLE_RETURN_IF_ERROR(wire());
    HEDDLE_ASSIGN_OR_RETURN(const auto outputs, read_list(cursor_, "outputs", kMaxItems));
    for (const JsonCursor& at : outputs) {
      HEDDLE_ASSIGN_OR_RETURN(const TensorId tensor, tensor_named(at));
      builder_.add_output(tensor);
    }
    auto graph = builder_.build();
    if (!graph.ok()) return std::move(graph).error().with_context(cursor_.path());
    return graph;
  }

 private:
  Status read_params() {
    HEDDLE_ASSIGN_OR_RETURN(const auto list, read_list(cursor_, "params", kMaxItems));
    for (const JsonCursor& at : list) {
      HEDDLE_RETURN_IF_ERROR(at.check_keys({"name", "bytes"}));
      Param param;
      HEDDLE_ASSIGN_OR_RETURN(param.name, read_name(at, "name"));
      HEDDLE_ASSIGN_OR_RETURN(const auto bytes, at.at("bytes"));
      HEDDLE_ASSIGN_OR_RETURN(param.bytes, bytes.as_int(0, kMaxGraphBytes));
      const std::string name = param.name;
      if (!params_.emplace(name, builder_.add_param(std::move(param))).second)
        return at.error("a second parameter is named '" + name + "'; names must be unique");
    }
    return {};
  }

  // Tensor ids follow the order of addition: an input comes after the outputs of the first `after_ops` ops.
  Status read_tensors_and_ops() {
    HEDDLE_ASSIGN_OR_RETURN(const auto inputs, read_list(cursor_, "inputs", kMaxItems));
    HEDDLE_ASSIGN_OR_RETURN(const auto ops_at, cursor_.at("ops"));
    HEDDLE_ASSIGN_OR_RETURN(op_cursors_, ops_at.elements(kMaxItems));
    size_t next_op = 0;
    for (const JsonCursor& at : inputs) {
      HEDDLE_RETURN_IF_ERROR(at.check_keys({"name", "dtype", "shape", "bytes", "after_ops"}));
      HEDDLE_ASSIGN_OR_RETURN(Tensor tensor, read_tensor(at));
      HEDDLE_ASSIGN_OR_RETURN(const int64_t after, at.int_or("after_ops", static_cast<int64_t>(next_op),
                                                             static_cast<int64_t>(next_op),
                                                             static_cast<int64_t>(op_cursors_.size())));
      for (; next_op < static_cast<size_t>(after); ++next_op)
        HEDDLE_RETURN_IF_ERROR(read_op(op_cursors_[next_op]));
      const std::string name = tensor.name;
      HEDDLE_RETURN_IF_ERROR(remember_tensor(at, name, builder_.add_input(std::move(tensor))));
    }
    for (; next_op < op_cursors_.size(); ++next_op) HEDDLE_RETURN_IF_ERROR(read_op(op_cursors_[next_op]));
    return {};
  }

  Status read_op(const JsonCursor& at) {
    HEDDLE_RETURN_IF_ERROR(
        at.check_keys({"name", "type", "inputs", "outputs", "params", "flops", "bytes_accessed",
                       "utilization", "given_times", "onnx_names", "members"}));
    Op op;
    HEDDLE_ASSIGN_OR_RETURN(op.name, read_name(at, "name"));
    HEDDLE_ASSIGN_OR_RETURN(op.type, read_name(at, "type"));
    HEDDLE_ASSIGN_OR_RETURN(op.flops, at.number_or("flops", 0, 0, kMaxGraphFlops));
    HEDDLE_ASSIGN_OR_RETURN(op.bytes_accessed, at.int_or("bytes_accessed", 0, 0, kMaxGraphBytes));
    HEDDLE_ASSIGN_OR_RETURN(op.utilization, at.number_or("utilization", 1, 0, 1));
    HEDDLE_RETURN_IF_ERROR(read_details(at, op));
    HEDDLE_ASSIGN_OR_RETURN(const auto outputs_at, read_list(at, "outputs", kMaxPerOp));
    std::vector<Tensor> outputs;
    std::vector<std::string> names;
    for (const JsonCursor& output : outputs_at) {
      HEDDLE_RETURN_IF_ERROR(output.check_keys({"name", "dtype", "shape", "bytes"}));
      HEDDLE_ASSIGN_OR_RETURN(Tensor tensor, read_tensor(output));
      names.push_back(tensor.name);
      outputs.push_back(std::move(tensor));
    }
    const OpId id = builder_.add_op(std::move(op), std::move(outputs));
    const auto ids = builder_.outputs_of(id);
    for (size_t i = 0; i < names.size(); ++i)
      HEDDLE_RETURN_IF_ERROR(remember_tensor(outputs_at[i], names[i], ids[i]));
    return {};
  }

  Status read_details(const JsonCursor& at, Op& op) {
    HEDDLE_ASSIGN_OR_RETURN(const auto params, read_list(at, "params", kMaxPerOp));
    for (const JsonCursor& param : params) {
      HEDDLE_ASSIGN_OR_RETURN(const auto name, param.as_string());
      const auto found = params_.find(name);
      if (found == params_.end()) return param.error(unknown("parameter", name, params_));
      op.params.push_back(found->second);
    }
    if (at.has("given_times")) {
      HEDDLE_ASSIGN_OR_RETURN(const auto times, at.at("given_times"));
      if (!times.value().is_object())
        return times.error("expected an object of device class to microseconds");
      for (const auto& item : times.value().items()) {
        HEDDLE_ASSIGN_OR_RETURN(const auto time, times.at(item.key()));
        HEDDLE_ASSIGN_OR_RETURN(const double us, time.as_number(0, kMaxGivenUs));
        op.given_times.push_back({item.key(), us});
      }
    }
    HEDDLE_ASSIGN_OR_RETURN(const auto onnx_names, read_list(at, "onnx_names", kMaxItems));
    for (const JsonCursor& name : onnx_names) {
      HEDDLE_ASSIGN_OR_RETURN(op.onnx_names.emplace_back(), name.as_string());
    }
    if (!at.has("members")) return {};
    HEDDLE_ASSIGN_OR_RETURN(const auto members_at, at.at("members"));
    HEDDLE_ASSIGN_OR_RETURN(const auto members, members_at.as_ints(0, INT32_MAX));
    for (const int64_t member : members) op.members.push_back(OpId(static_cast<int32_t>(member)));
    return {};
  }

  // Ops may read tensors of later ops, so inputs are set once all names are known.
  Status wire() {
    for (size_t i = 0; i < op_cursors_.size(); ++i) {
      HEDDLE_ASSIGN_OR_RETURN(const auto list, read_list(op_cursors_[i], "inputs", kMaxPerOp));
      std::vector<TensorId> inputs;
      inputs.reserve(list.size());
      for (const JsonCursor& at : list) {
        HEDDLE_ASSIGN_OR_RETURN(inputs.emplace_back(), tensor_named(at));
      }
      builder_.set_inputs(OpId(i), std::move(inputs));
    }
    return {};
  }

  Status remember_tensor(const JsonCursor& at, const std::string& name, TensorId id) {
    if (tensors_.emplace(name, id).second) return {};
    return at.error("a second tensor is named '" + name + "'; names must be unique");
  }

  Result<TensorId> tensor_named(const JsonCursor& at) const {
    HEDDLE_ASSIGN_OR_RETURN(const auto name, at.as_string());
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) return at.error(unknown("tensor", name, tensors_));
    return found->second;
  }

  template <class IdType>
  static std::string unknown(const char* what, const std::string& name,
                             const std::map<std::string, IdType>& known) {
    constexpr size_t kMostCandidates = 10'000;  // each costs one edit distance
    std::vector<std::string> names;
    for (const auto& [candidate, id] : known) {
      if (names.size() == kMostCandidates) break;
      names.push_back(candidate);
    }
    const bool short_enough = name.size() <= 256;  // the distance takes quadratic time
    return "no " + std::string(what) + " is named '" + name + "'" +
           (short_enough ? did_you_mean(name, names) : "");
  }

  const JsonCursor& cursor_;
  GraphBuilder builder_;
  std::vector<JsonCursor> op_cursors_;
  // Ordered maps: a hostile file cannot slow down look-ups by hash collisions.
  std::map<std::string, TensorId> tensors_;
  std::map<std::string, ParamId> params_;
};

}  // namespace

Json graph_to_json(const Graph& graph) {
  Json json;
  json["format"] = kFormat;
  json["version"] = kGraphJsonVersion;
  json["name"] = graph.name();
  json["inputs"] = Json::array();
  const auto before = ops_before_inputs(graph);
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    Json input = tensor_to_json(graph.tensor(graph.inputs()[i]));
    if (before[i] != (i == 0 ? 0 : before[i - 1])) input["after_ops"] = before[i];
    json["inputs"].push_back(std::move(input));
  }
  json["params"] = Json::array();
  for (const Param& param : graph.params())
    json["params"].push_back({{"name", param.name}, {"bytes", param.bytes}});
  json["ops"] = Json::array();
  for (const Op& op : graph.ops()) json["ops"].push_back(op_to_json(graph, op));
  json["outputs"] = Json::array();
  for (const TensorId output : graph.outputs()) json["outputs"].push_back(graph.tensor(output).name);
  return json;
}

Result<std::shared_ptr<const Graph>> graph_from_json(const JsonCursor& cursor) {
  HEDDLE_RETURN_IF_ERROR(
      cursor.check_keys({"format", "version", "name", "inputs", "params", "ops", "outputs"}));
  HEDDLE_ASSIGN_OR_RETURN(const auto format_at, cursor.at("format"));
  HEDDLE_ASSIGN_OR_RETURN(const auto format, format_at.as_string());
  if (format != kFormat)
    return format_at.error("this is a '" + format + "' file, expected '" + kFormat + "'");
  HEDDLE_ASSIGN_OR_RETURN(const auto version_at, cursor.at("version"));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t version, version_at.as_int());
  if (version != kGraphJsonVersion)
    return version_at.error("version " + std::to_string(version) +
                            " is not supported; this program reads version " +
                            std::to_string(kGraphJsonVersion));
  HEDDLE_ASSIGN_OR_RETURN(auto name, read_name(cursor, "name"));
  return GraphReader(cursor, std::move(name)).run();
}

Result<std::shared_ptr<const Graph>> read_graph_file(const std::string& path) {
  auto json = read_json_file(path);
  if (!json.ok()) return std::move(json).error();
  auto graph = graph_from_json(JsonCursor(*json));
  if (!graph.ok()) return std::move(graph).error().with_context(path);
  return graph;
}

}  // namespace heddle
