#include "heddle/graph/ios_graph.h"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include "heddle/base/json.h"

namespace heddle {
namespace {

constexpr size_t kMaxNodes = 1'000'000, kMaxEdges = 10'000'000;
constexpr int64_t kMaxSide = int64_t{1} << 24;  // of a shape
constexpr int64_t kMaxBytes = int64_t{1} << 50;
constexpr double kMaxMs = kMaxGivenUs / 1000;
constexpr int64_t kF32Bytes = 4;

struct Shape3 {
  int64_t channels = 0, height = 0, width = 0;
  Shape with_channels(int64_t c) const { return {c, height, width}; }
  // Bytes of `count` channels; sides are limited, so only the product of all three can exceed the limit.
  int64_t bytes_of(int64_t count) const { return count * height * width * kF32Bytes; }
};

// A reader's slice of a source's channels; source -1: the model's input.
struct Use {
  int64_t source = -1, target = 0, term = 0, position = 0, begin = 0, end = 0;
};

Result<Shape3> read_shape(const JsonCursor& at) {
  HEDDLE_ASSIGN_OR_RETURN(const auto sides, at.as_ints(1, kMaxSide));
  if (sides.size() != 3)
    return at.error("has " + std::to_string(sides.size()) + " sides, expected 3: channels, height and width");
  if (sides[1] * sides[2] > kMaxBytes / kF32Bytes / sides[0])
    return at.error("a tensor of this shape has more than 2^50 bytes");
  return Shape3{sides[0], sides[1], sides[2]};
}

Result<int64_t> read_int(const JsonCursor& at, std::string_view key, int64_t most) {
  HEDDLE_ASSIGN_OR_RETURN(const auto member, at.at(key));
  return member.as_int(0, most);
}

// Maps the format's op names to those of the cost models; unknown names stay as they are.
Result<std::string> type_of(const JsonCursor& node) {
  HEDDLE_ASSIGN_OR_RETURN(const auto op_at, node.at("op"));
  HEDDLE_ASSIGN_OR_RETURN(const auto op, op_at.as_string());
  if (node.has("sub")) {
    HEDDLE_ASSIGN_OR_RETURN(const auto sub_at, node.at("sub"));
    HEDDLE_ASSIGN_OR_RETURN(const auto parts, sub_at.elements(1000));
    if (parts.empty()) return sub_at.error("is empty; expected the parts of a fused op");
    std::string type;
    for (const auto& part : parts) {
      HEDDLE_RETURN_IF_ERROR(part.check_keys({"op", "attrs", "macs", "weight_bytes", "out_shape"}));
      HEDDLE_ASSIGN_OR_RETURN(const auto name, type_of(part));
      type += (type.empty() ? "" : "+") + name;
    }
    return type;
  }
  int64_t groups = 1;
  std::string pool = "max";
  if (node.has("attrs")) {
    HEDDLE_ASSIGN_OR_RETURN(const auto attributes, node.at("attrs"));
    HEDDLE_ASSIGN_OR_RETURN(groups, attributes.int_or("groups", groups, 1));
    HEDDLE_ASSIGN_OR_RETURN(pool, attributes.string_or("pool_type", pool));
  }
  if (op == "conv") return std::string(groups > 1 ? "GroupConvolution" : "Convolution");
  if (op == "pool") return std::string(pool == "max" ? "MaxPool" : "AvgPool");
  if (op == "relu") return std::string("Relu");
  if (op == "identity") return std::string("Identity");
  return op;
}

class Reader {
 public:
  explicit Reader(const Json& json) : root_(json) {}

  Result<IosFile> run() {
    HEDDLE_RETURN_IF_ERROR(
        root_.check_keys({"name", "source", "optimised_for", "optimiser", "batch", "dtype", "input_shape",
                          "num_nodes", "num_edges", "num_distinct_edges", "num_blocks", "total_macs",
                          "total_weight_bytes", "nodes", "edges", "graph_inputs", "stages", "comment"}));
    HEDDLE_RETURN_IF_ERROR(read_head());
    HEDDLE_ASSIGN_OR_RETURN(const auto nodes_at, root_.at("nodes"));
    HEDDLE_ASSIGN_OR_RETURN(const auto nodes, nodes_at.elements(kMaxNodes));
    if (nodes.empty()) return nodes_at.error("there is no node; expected at least one");
    for (const auto& node : nodes) HEDDLE_RETURN_IF_ERROR(read_node(node));
    HEDDLE_RETURN_IF_ERROR(read_uses("graph_inputs", false));
    HEDDLE_RETURN_IF_ERROR(read_uses("edges", true));
    HEDDLE_RETURN_IF_ERROR(check_count("num_nodes", ops_.size()));
    HEDDLE_RETURN_IF_ERROR(check_count("num_edges", edges_));
    IosFile file;
    HEDDLE_ASSIGN_OR_RETURN(file.graph, build());
    if (root_.has("stages")) HEDDLE_RETURN_IF_ERROR(read_stages(file));
    return file;
  }

 private:
  Status read_head() {
    HEDDLE_ASSIGN_OR_RETURN(const auto name_at, root_.at("name"));
    HEDDLE_ASSIGN_OR_RETURN(name_, name_at.as_string());
    HEDDLE_ASSIGN_OR_RETURN(const auto dtype, root_.string_or("dtype", "float32"));
    if (dtype != "float32") {
      return root_.at("dtype")->error("is \"" + dtype + "\"; only \"float32\" is supported");
    }
    HEDDLE_ASSIGN_OR_RETURN(const auto shape_at, root_.at("input_shape"));
    HEDDLE_ASSIGN_OR_RETURN(input_shape_, read_shape(shape_at));
    return {};
  }

  Status check_count(std::string_view key, size_t found) const {
    if (!root_.has(key)) return {};
    HEDDLE_ASSIGN_OR_RETURN(const auto at, root_.at(key));
    HEDDLE_ASSIGN_OR_RETURN(const auto count, at.as_int());
    if (count != static_cast<int64_t>(found)) {
      return at.error("is " + std::to_string(count) + ", but there are " + std::to_string(found));
    }
    return {};
  }

  Status read_node(const JsonCursor& at) {
    HEDDLE_RETURN_IF_ERROR(at.check_keys({"id", "name", "block", "op", "sub", "attrs", "macs", "weight_bytes",
                                          "in_shape", "out_shape", "in_bytes", "out_bytes", "summed_inputs",
                                          "time_ms", "gpu_utilization", "merged_from"}));
    HEDDLE_ASSIGN_OR_RETURN(const auto id_at, at.at("id"));
    HEDDLE_ASSIGN_OR_RETURN(const auto id, id_at.as_int());
    if (id != static_cast<int64_t>(ops_.size())) {
      return id_at.error("is " + std::to_string(id) + ", expected " + std::to_string(ops_.size()) +
                         ": nodes are numbered from 0 in their order");
    }
    Op op;
    HEDDLE_ASSIGN_OR_RETURN(const auto name_at, at.at("name"));
    HEDDLE_ASSIGN_OR_RETURN(op.name, name_at.as_string());
    if (!names_.insert(op.name).second) return name_at.error("a second node is named '" + op.name + "'");
    HEDDLE_ASSIGN_OR_RETURN(op.type, type_of(at));
    HEDDLE_ASSIGN_OR_RETURN(const auto macs, read_int(at, "macs", int64_t{1} << 60));
    op.flops = 2 * static_cast<double>(macs);
    HEDDLE_ASSIGN_OR_RETURN(const auto weights, read_int(at, "weight_bytes", kMaxBytes));
    HEDDLE_ASSIGN_OR_RETURN(const auto in_bytes, read_int(at, "in_bytes", kMaxBytes));
    HEDDLE_ASSIGN_OR_RETURN(const auto out_at, at.at("out_shape"));
    HEDDLE_ASSIGN_OR_RETURN(const auto shape, read_shape(out_at));
    HEDDLE_ASSIGN_OR_RETURN(const auto bytes_at, at.at("out_bytes"));
    HEDDLE_ASSIGN_OR_RETURN(const auto out_bytes, bytes_at.as_int(0, kMaxBytes));
    if (out_bytes != shape.bytes_of(shape.channels)) {
      return bytes_at.error("is " + std::to_string(out_bytes) + ", but out_shape in float32 has " +
                            std::to_string(shape.bytes_of(shape.channels)));
    }
    op.bytes_accessed = in_bytes + weights + out_bytes;
    HEDDLE_RETURN_IF_ERROR(read_measurements(at, op));
    shapes_.push_back(shape);
    weights_.push_back(weights);
    ops_.push_back(std::move(op));
    return {};
  }

  static Status read_measurements(const JsonCursor& at, Op& op) {
    if (at.has("time_ms") && !at.at("time_ms")->value().is_null()) {
      HEDDLE_ASSIGN_OR_RETURN(const auto ms, at.at("time_ms")->as_number(0, kMaxMs));
      op.given_times.push_back({"*", ms * 1000});
    }
    if (at.has("gpu_utilization") && !at.at("gpu_utilization")->value().is_null()) {
      HEDDLE_ASSIGN_OR_RETURN(op.utilization, at.at("gpu_utilization")->as_number(1e-9, 1));
    }
    return {};
  }

  Status read_uses(std::string_view key, bool edges) {
    HEDDLE_ASSIGN_OR_RETURN(const auto list_at, root_.at(key));
    HEDDLE_ASSIGN_OR_RETURN(const auto list, list_at.elements(kMaxEdges));
    const auto last = static_cast<int64_t>(ops_.size()) - 1;
    for (const auto& at : list) {
      HEDDLE_RETURN_IF_ERROR(at.check_keys({"src", "dst", "term", "pos", "channels", "bytes"}));
      Use use;
      HEDDLE_ASSIGN_OR_RETURN(use.target, read_int(at, "dst", last));
      if (edges) {
        HEDDLE_ASSIGN_OR_RETURN(use.source, read_int(at, "src", last));
        if (use.source >= use.target)
          return at.error("leads from node " + std::to_string(use.source) + " to node " +
                          std::to_string(use.target) +
                          "; expected a later one: ids are in topological order");
      }
      HEDDLE_ASSIGN_OR_RETURN(use.term, at.int_or("term", 0, 0));
      HEDDLE_ASSIGN_OR_RETURN(use.position, at.int_or("pos", 0, 0));
      HEDDLE_RETURN_IF_ERROR(read_channels(at, use));
      uses_.push_back(use);
    }
    if (edges) edges_ = list.size();
    return {};
  }

  const Shape3& shape_of(int64_t source) const {
    return source < 0 ? input_shape_ : shapes_[static_cast<size_t>(source)];
  }

  Status read_channels(const JsonCursor& at, Use& use) const {
    const Shape3& shape = shape_of(use.source);
    HEDDLE_ASSIGN_OR_RETURN(const auto channels_at, at.at("channels"));
    HEDDLE_ASSIGN_OR_RETURN(const auto range, channels_at.as_ints(0, shape.channels));
    if (range.size() != 2 || range[0] >= range[1])
      return channels_at.error("expected [begin, end) with begin < end");
    use.begin = range[0];
    use.end = range[1];
    HEDDLE_ASSIGN_OR_RETURN(const auto bytes_at, at.at("bytes"));
    HEDDLE_ASSIGN_OR_RETURN(const auto bytes, bytes_at.as_int(0, kMaxBytes));
    if (bytes != shape.bytes_of(use.end - use.begin)) {
      return bytes_at.error("is " + std::to_string(bytes) + ", but these channels of the source have " +
                            std::to_string(shape.bytes_of(use.end - use.begin)));
    }
    return {};
  }

  // Channel boundaries: every place where a reader's slice begins or ends.
  std::vector<int64_t> cuts_of(const std::vector<const Use*>& readers, int64_t channels) const {
    std::vector<int64_t> cuts = {0, channels};
    for (const Use* use : readers) {
      cuts.push_back(use->begin);
      cuts.push_back(use->end);
    }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    return cuts;
  }

  Result<std::shared_ptr<const Graph>> build() {
    const size_t n = ops_.size();
    // Sort arguments into the order of concatenation and summation.
    std::stable_sort(uses_.begin(), uses_.end(), [](const Use& a, const Use& b) {
      return std::tie(a.target, a.term, a.position) < std::tie(b.target, b.term, b.position);
    });
    std::vector<std::vector<const Use*>> readers(n + 1);  // the last entry is the model's input
    for (const Use& use : uses_)
      readers[use.source < 0 ? n : static_cast<size_t>(use.source)].push_back(&use);

    GraphBuilder builder(name_);
    std::vector<std::vector<int64_t>> cuts(n + 1);
    std::vector<std::vector<TensorId>> pieces(n + 1);
    cuts[n] = cuts_of(readers[n], input_shape_.channels);
    for (size_t i = 0; i + 1 < cuts[n].size() && !readers[n].empty(); ++i) {
      pieces[n].push_back(builder.add_input(piece("input", input_shape_, cuts[n], i)));
    }
    for (size_t v = 0; v < n; ++v) {
      Op op = ops_[v];
      if (weights_[v] > 0) op.params.push_back(builder.add_param({op.name + ".weight", weights_[v]}));
      cuts[v] = cuts_of(readers[v], shapes_[v].channels);
      std::vector<Tensor> outputs;
      for (size_t i = 0; i + 1 < cuts[v].size(); ++i)
        outputs.push_back(piece(op.name + ".out", shapes_[v], cuts[v], i));
      const OpId id = builder.add_op(std::move(op), std::move(outputs));
      const auto made = builder.outputs_of(id);
      pieces[v].assign(made.begin(), made.end());
      if (readers[v].empty()) builder.add_output(made.front());
    }
    std::vector<std::vector<TensorId>> inputs(n);
    for (const Use& use : uses_) {
      const size_t s = use.source < 0 ? n : static_cast<size_t>(use.source);
      for (size_t i = 0; i + 1 < cuts[s].size(); ++i) {
        if (cuts[s][i] >= use.begin && cuts[s][i + 1] <= use.end)
          inputs[static_cast<size_t>(use.target)].push_back(pieces[s][i]);
      }
    }
    for (size_t v = 0; v < n; ++v) builder.set_inputs(OpId(v), std::move(inputs[v]));
    auto graph = builder.build();
    if (!graph.ok()) return std::move(graph).error().with_context("$");
    return graph;
  }

  static Tensor piece(std::string name, const Shape3& shape, const std::vector<int64_t>& cuts, size_t i) {
    if (cuts.size() > 2) name += "[" + std::to_string(cuts[i]) + ":" + std::to_string(cuts[i + 1]) + "]";
    Tensor tensor;
    tensor.name = std::move(name);
    tensor.shape = shape.with_channels(cuts[i + 1] - cuts[i]);
    return tensor;
  }

  Status read_stages(IosFile& file) const {
    const Graph& graph = *file.graph;
    HEDDLE_ASSIGN_OR_RETURN(const auto stages_at, root_.at("stages"));
    HEDDLE_ASSIGN_OR_RETURN(const auto stages, stages_at.elements(kMaxNodes));
    constexpr int64_t kNever = INT64_MAX;
    // When each op runs: stage, group within the stage, place within the group.
    std::vector<std::array<int64_t, 3>> when(graph.num_ops(), {kNever, 0, 0});
    for (size_t s = 0; s < stages.size(); ++s) {
      HEDDLE_RETURN_IF_ERROR(stages[s].check_keys({"block", "groups", "device"}));
      IosStage stage;
      HEDDLE_ASSIGN_OR_RETURN(stage.block, stages[s].int_or("block", 0, 0));
      HEDDLE_ASSIGN_OR_RETURN(stage.device, stages[s].string_or("device", ""));
      HEDDLE_ASSIGN_OR_RETURN(const auto groups_at, stages[s].at("groups"));
      HEDDLE_ASSIGN_OR_RETURN(const auto groups, groups_at.elements(kMaxNodes));
      if (groups.empty()) return groups_at.error("a stage needs at least one group");
      for (size_t g = 0; g < groups.size(); ++g) {
        HEDDLE_ASSIGN_OR_RETURN(const auto members, groups[g].elements(kMaxNodes));
        if (members.empty()) return groups[g].error("a group needs at least one op");
        auto& group = stage.groups.emplace_back();
        for (const auto& member : members) {
          HEDDLE_ASSIGN_OR_RETURN(const auto id, member.as_int(0, static_cast<int64_t>(graph.num_ops()) - 1));
          auto& place = when[static_cast<size_t>(id)];
          if (place[0] != kNever) return member.error("op " + std::to_string(id) + " is scheduled twice");
          place = {static_cast<int64_t>(s), static_cast<int64_t>(g), static_cast<int64_t>(group.size())};
          for (const OpId before : graph.predecessors(OpId(static_cast<int32_t>(id)))) {
            const auto& b = when[before.index()];
            const bool done = b[0] < place[0] || (b[0] == place[0] && b[1] == place[1] && b[2] < place[2]);
            if (!done) {
              return member.error("op " + std::to_string(id) + " reads from op " +
                                  std::to_string(before.value) +
                                  ", which is neither in an earlier stage nor before it in its group");
            }
          }
          group.push_back(OpId(static_cast<int32_t>(id)));
        }
      }
      file.stages.push_back(std::move(stage));
    }
    for (size_t v = 0; v < when.size(); ++v) {
      if (when[v][0] == kNever) return stages_at.error("op " + std::to_string(v) + " is in no stage");
    }
    return {};
  }

  JsonCursor root_;
  std::string name_;
  Shape3 input_shape_;
  std::vector<Op> ops_;
  std::set<std::string> names_;
  std::vector<Shape3> shapes_;  // of each node's output
  std::vector<int64_t> weights_;
  std::vector<Use> uses_;
  size_t edges_ = 0;
};

bool has_element_with(const Json& json, const char* list, const char* key) {
  const auto found = json.find(list);
  return found != json.end() && found->is_array() && !found->empty() && found->front().is_object() &&
         found->front().contains(key);
}

}  // namespace

bool is_ios_graph(const Json& json) {
  if (!json.is_object() || !has_element_with(json, "nodes", "macs") || !json.contains("edges")) return false;
  return json["edges"].empty() || has_element_with(json, "edges", "channels");
}

Result<IosFile> ios_graph_from_json(const Json& json) { return Reader(json).run(); }

Result<IosFile> read_ios_graph(const std::string& path) {
  auto json = read_json_file(path);
  if (!json.ok()) return std::move(json).error();
  auto file = ios_graph_from_json(*json);
  if (!file.ok()) return std::move(file).error().with_context(path);
  return file;
}

Json with_stages(Json document, const std::vector<IosStage>& stages) {
  Json list = Json::array();
  for (const IosStage& stage : stages) {
    Json groups = Json::array();
    for (const auto& group : stage.groups) {
      Json ids = Json::array();
      for (const OpId op : group) ids.push_back(op.value);
      groups.push_back(std::move(ids));
    }
    Json entry = {{"block", stage.block}, {"groups", std::move(groups)}};
    if (!stage.device.empty()) entry["device"] = stage.device;
    list.push_back(std::move(entry));
  }
  document["stages"] = std::move(list);
  return document;
}

}  // namespace heddle
