#include "heddle/graph/graph_json.h"

#include <map>

#include "heddle/base/fields.h"
#include "heddle/base/spelling.h"

namespace heddle {
namespace {

constexpr char kFormat[] = "heddle-graph";

// Limits far above any real model: they keep the memory use of a hostile file near its own size.
constexpr const char* kDTypeText = "an element type such as \"f32\" or \"i64\"";
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

Result<std::string> name_at(const JsonCursor& at) {
  HEDDLE_ASSIGN_OR_RETURN(std::string name, at.as_string());
  if (name.size() <= kMaxNameBytes) return name;
  return at.error("a name has at most " + std::to_string(kMaxNameBytes) + " bytes, this one " +
                  std::to_string(name.size()));
}

void read_tensor(Fields& f, Tensor& tensor) {
  f.required("name", tensor.name, name_at)
      .required("dtype", tensor.dtype, dtype_from_name, kDTypeText)
      .required("shape", [&](const JsonCursor& at) -> Status {
        HEDDLE_ASSIGN_OR_RETURN(tensor.shape, at.as_ints(0, INT64_MAX));
        const auto bytes = tensor_bytes(tensor.dtype, tensor.shape);
        if (!bytes || *bytes > kMaxGraphBytes)
          return at.error("a tensor of this shape has more than 2^60 bytes");
        tensor.bytes = *bytes;
        return {};
      });
  // A shape with bytes must not be given 0 bytes, because 0 means "compute it".
  f.optional("bytes", tensor.bytes, tensor.bytes > 0 ? 1 : 0, kMaxGraphBytes);
}

class GraphReader {
 public:
  explicit GraphReader(std::string name) : builder_(std::move(name)) {}

  Result<std::shared_ptr<const Graph>> run(const JsonCursor& at, Fields& f) {
    f.optional("params", each([this](const JsonCursor& param) { return read_param(param); }, kMaxItems))
        .required("ops", each(
                             [this](const JsonCursor& op) -> Status {
                               ops_.push_back(op);
                               return {};
                             },
                             kMaxItems))
        .optional("inputs", each([this](const JsonCursor& input) { return read_input(input); }, kMaxItems))
        .then([this] { return read_ops_before(ops_.size()); })
        .then([this] { return wire(); })
        .optional("outputs", each(
                                 [this](const JsonCursor& output) -> Status {
                                   HEDDLE_ASSIGN_OR_RETURN(const TensorId tensor,
                                                           find("tensor", output, tensors_));
                                   builder_.add_output(tensor);
                                   return {};
                                 },
                                 kMaxItems));
    HEDDLE_RETURN_IF_ERROR(f.finish());
    auto graph = builder_.build();
    if (!graph.ok()) return std::move(graph).error().with_context(at.path());
    return graph;
  }

 private:
  Status read_param(const JsonCursor& at) {
    Fields f(at);
    Param param;
    f.required("name", param.name, name_at)
        .required("bytes", param.bytes, 0, kMaxGraphBytes)
        .optional("dtype", param.dtype, dtype_from_name, kDTypeText);
    HEDDLE_RETURN_IF_ERROR(f.finish());
    HEDDLE_ASSIGN_OR_RETURN(ParamId * id, new_name("parameter", at, param.name, params_));
    *id = builder_.add_param(std::move(param));
    return {};
  }

  // Tensor ids follow the order of addition: an input comes after the outputs of the first `after_ops` ops.
  Status read_input(const JsonCursor& at) {
    Fields f(at);
    Tensor tensor;
    size_t after_ops = next_op_;
    read_tensor(f, tensor);
    f.optional("after_ops", after_ops, static_cast<int64_t>(next_op_), static_cast<int64_t>(ops_.size()));
    HEDDLE_RETURN_IF_ERROR(f.finish());
    HEDDLE_RETURN_IF_ERROR(read_ops_before(after_ops));
    HEDDLE_ASSIGN_OR_RETURN(TensorId * id, new_name("tensor", at, tensor.name, tensors_));
    *id = builder_.add_input(std::move(tensor));
    return {};
  }

  Status read_ops_before(size_t end) {
    for (; next_op_ < end; ++next_op_) HEDDLE_RETURN_IF_ERROR(read_op(ops_[next_op_]));
    return {};
  }

  Status read_op(const JsonCursor& at) {
    Fields f(at);
    Op op;
    std::vector<Tensor> outputs;
    std::vector<TensorId*> ids;
    f.required("name", op.name, name_at)
        .required("type", op.type, name_at)
        .optional("flops", op.flops, 0, kMaxGraphFlops)
        .optional("bytes_accessed", op.bytes_accessed, 0, kMaxGraphBytes)
        .optional("utilization", op.utilization, 0, 1)
        .optional("params",
                  each_into(
                      op.params, [this](const JsonCursor& name) { return find("parameter", name, params_); },
                      kMaxPerOp))
        .optional("given_times",
                  each_member("an object of device class to microseconds",
                              [&op](const std::string& device_class, const JsonCursor& time) -> Status {
                                HEDDLE_ASSIGN_OR_RETURN(const double us, time.as_number(0, kMaxGivenUs));
                                op.given_times.push_back({device_class, us});
                                return {};
                              }))
        .optional("onnx_names", op.onnx_names)
        .optional("members", op.members, size_t{1} << 31)
        .optional("outputs", each(
                                 [&](const JsonCursor& output) -> Status {
                                   Fields of_output(output);
                                   read_tensor(of_output, outputs.emplace_back());
                                   HEDDLE_RETURN_IF_ERROR(of_output.finish());
                                   HEDDLE_ASSIGN_OR_RETURN(
                                       ids.emplace_back(),
                                       new_name("tensor", output, outputs.back().name, tensors_));
                                   return {};
                                 },
                                 kMaxPerOp))
        .optional("inputs", [this](const JsonCursor& names) -> Status {
          inputs_.emplace_back(OpId(next_op_), names);
          return {};
        });
    HEDDLE_RETURN_IF_ERROR(f.finish());
    const OpId id = builder_.add_op(std::move(op), std::move(outputs));
    for (size_t i = 0; i < ids.size(); ++i) *ids[i] = builder_.outputs_of(id)[i];
    return {};
  }

  // Ops may read tensors of later ops, so inputs are set once all names are known.
  Status wire() {
    for (const auto& [op, names] : inputs_) {
      std::vector<TensorId> inputs;
      const auto read = each_into(
          inputs, [this](const JsonCursor& name) { return find("tensor", name, tensors_); }, kMaxPerOp);
      HEDDLE_RETURN_IF_ERROR(read(names));
      builder_.set_inputs(op, std::move(inputs));
    }
    return {};
  }

  // The place for the id of a new name.
  template <class IdType>
  static Result<IdType*> new_name(const std::string& what, const JsonCursor& at, const std::string& name,
                                  std::map<std::string, IdType>& known) {
    const auto [entry, is_new] = known.emplace(name, IdType());
    if (is_new) return &entry->second;
    return at.error("a second " + what + " is named '" + name + "'; names must be unique");
  }

  template <class IdType>
  static Result<IdType> find(const std::string& what, const JsonCursor& at,
                             const std::map<std::string, IdType>& known) {
    HEDDLE_ASSIGN_OR_RETURN(const std::string name, at.as_string());
    const auto found = known.find(name);
    if (found != known.end()) return found->second;
    constexpr size_t kMostCandidates = 10'000;  // each costs one edit distance
    std::vector<std::string> names;
    for (const auto& [candidate, id] : known) {
      if (names.size() == kMostCandidates) break;
      names.push_back(candidate);
    }
    return at.error("no " + what + " is named " + quote_text(name) + did_you_mean(name, names));
  }

  GraphBuilder builder_;
  std::vector<JsonCursor> ops_;
  size_t next_op_ = 0;
  std::vector<std::pair<OpId, JsonCursor>> inputs_;  // lists of names
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
  for (const Param& param : graph.params()) {
    Json& made = json["params"].emplace_back(Json{{"name", param.name}, {"bytes", param.bytes}});
    if (param.dtype != DType::kF32) made["dtype"] = dtype_name(param.dtype);
  }
  json["ops"] = Json::array();
  for (const Op& op : graph.ops()) json["ops"].push_back(op_to_json(graph, op));
  json["outputs"] = Json::array();
  for (const TensorId output : graph.outputs()) json["outputs"].push_back(graph.tensor(output).name);
  return json;
}

Result<std::shared_ptr<const Graph>> graph_from_json(const JsonCursor& at) {
  Fields f(at, kFormat, kGraphJsonVersion);
  std::string name;
  f.required("name", name, name_at);
  return GraphReader(std::move(name)).run(at, f);
}

Result<std::shared_ptr<const Graph>> read_graph_file(const std::string& path) {
  return read_json_file(path, graph_from_json);
}

}  // namespace heddle
