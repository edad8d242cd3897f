#include "heddle/graph/ios_graph.h"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include "heddle/base/fields.h"

namespace heddle {
namespace {

constexpr size_t kMaxNodes = 1'000'000, kMaxEdges = 10'000'000, kMaxParts = 1000;
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

std::optional<std::string> float32_from_name(std::string_view name) {
  return name == "float32" ? std::optional<std::string>(name) : std::nullopt;
}

// Calls `read` unless the value is null, which stands for a missing one.
template <class Read>
auto unless_null(Read read) {
  return [read](const JsonCursor& at) -> Status { return at.value().is_null() ? Status() : read(at); };
}

// Members "op", "sub" and "attrs", with the format's op names mapped to those of the cost models; unknown names
// stay as they are.
void read_type(Fields& f, std::string& type) {
  std::string parts;
  int64_t groups = 1;
  std::string pool = "max";
  f.required("op", type)
      .optional("sub",
                [&parts](const JsonCursor& at) -> Status {
                  const auto read_part = [&parts](const JsonCursor& element) -> Status {
                    Fields part(element);
                    std::string name;
                    read_type(part, name);
                    parts += (parts.empty() ? "" : "+") + name;
                    return part.ignored({"macs", "weight_bytes", "out_shape"}).finish();
                  };
                  HEDDLE_RETURN_IF_ERROR(each(read_part, kMaxParts)(at));
                  return parts.empty() ? at.error("is empty; expected the parts of a fused op") : Status();
                })
      .optional("attrs", [&](const JsonCursor& at) -> Status {
        HEDDLE_ASSIGN_OR_RETURN(groups, at.int_or("groups", groups, 1));
        HEDDLE_ASSIGN_OR_RETURN(pool, at.string_or("pool_type", pool));
        return {};
      });
  if (!parts.empty())
    type = parts;
  else if (type == "conv")
    type = groups > 1 ? "GroupConvolution" : "Convolution";
  else if (type == "pool")
    type = pool == "max" ? "MaxPool" : "AvgPool";
  else if (type == "relu")
    type = "Relu";
  else if (type == "identity")
    type = "Identity";
}

class Reader {
 public:
  Result<IosFile> run(const JsonCursor& root) {
    Fields f(root);
    std::string dtype = "float32";
    IosFile file;
    f.required("name", name_)
        .optional("dtype", dtype, float32_from_name, "\"float32\", the only supported type")
        .required("input_shape", input_shape_, read_shape)
        .required("nodes",
                  [this](const JsonCursor& at) -> Status {
                    HEDDLE_RETURN_IF_ERROR(
                        each([this](const JsonCursor& node) { return read_node(node); }, kMaxNodes)(at));
                    return ops_.empty() ? at.error("there is no node; expected at least one") : Status();
                  })
        .required("graph_inputs",
                  each([this](const JsonCursor& at) { return read_use(at, false); }, kMaxEdges))
        .then([this] {
          inputs_ = uses_.size();
          return Status();
        })
        .required("edges", each([this](const JsonCursor& at) { return read_use(at, true); }, kMaxEdges))
        .optional("num_nodes", [this](const JsonCursor& at) { return check_count(at, ops_.size()); })
        .optional("num_edges",
                  [this](const JsonCursor& at) { return check_count(at, uses_.size() - inputs_); })
        .then([&]() -> Status {
          HEDDLE_ASSIGN_OR_RETURN(file.graph, build());
          return {};
        })
        .optional("stages", [&](const JsonCursor& at) { return read_stages(at, file); })
        .ignored({"source", "optimised_for", "optimiser", "batch", "num_distinct_edges", "num_blocks",
                  "total_macs", "total_weight_bytes", "comment"});
    HEDDLE_RETURN_IF_ERROR(f.finish());
    return file;
  }

 private:
  static Status check_count(const JsonCursor& at, size_t found) {
    HEDDLE_ASSIGN_OR_RETURN(const auto count, at.as_int());
    if (count == static_cast<int64_t>(found)) return {};
    return at.error("is " + std::to_string(count) + ", but there are " + std::to_string(found));
  }

  Status read_node(const JsonCursor& at) {
    Fields f(at);
    Op op;
    Shape3 shape;
    int64_t macs = 0, weights = 0, in_bytes = 0, out_bytes = 0;
    f.required("id", [this](const JsonCursor& id) {
       return check_next(id);
     }).required("name", [&](const JsonCursor& name) -> Status {
      HEDDLE_ASSIGN_OR_RETURN(op.name, name.as_string());
      if (names_.insert(op.name).second) return {};
      return name.error("a second node is named '" + op.name + "'");
    });
    read_type(f, op.type);
    f.required("macs", macs, 0, int64_t{1} << 60)
        .required("weight_bytes", weights, 0, kMaxBytes)
        .required("in_bytes", in_bytes, 0, kMaxBytes)
        .required("out_shape", shape, read_shape)
        .required("out_bytes",
                  [&](const JsonCursor& bytes) -> Status {
                    HEDDLE_ASSIGN_OR_RETURN(out_bytes, bytes.as_int(0, kMaxBytes));
                    if (out_bytes == shape.bytes_of(shape.channels)) return {};
                    return bytes.error("is " + std::to_string(out_bytes) + ", but out_shape in float32 has " +
                                       std::to_string(shape.bytes_of(shape.channels)));
                  })
        .optional("time_ms", unless_null([&op](const JsonCursor& time) -> Status {
                    HEDDLE_ASSIGN_OR_RETURN(const double ms, time.as_number(0, kMaxMs));
                    op.given_times.push_back({"*", ms * 1000});
                    return {};
                  }))
        .optional("gpu_utilization", unless_null([&op](const JsonCursor& share) {
                    return take(share, op.utilization, 1e-9, 1);
                  }))
        .ignored({"block", "in_shape", "summed_inputs", "merged_from"});
    HEDDLE_RETURN_IF_ERROR(f.finish());
    op.flops = 2 * static_cast<double>(macs);
    op.bytes_accessed = in_bytes + weights + out_bytes;
    shapes_.push_back(shape);
    weights_.push_back(weights);
    ops_.push_back(std::move(op));
    return {};
  }

  Status check_next(const JsonCursor& at) const {
    HEDDLE_ASSIGN_OR_RETURN(const auto id, at.as_int());
    if (id == static_cast<int64_t>(ops_.size())) return {};
    return at.error("is " + std::to_string(id) + ", expected " + std::to_string(ops_.size()) +
                    ": nodes are numbered from 0 in their order");
  }

  Status read_use(const JsonCursor& at, bool is_edge) {
    const auto last = static_cast<int64_t>(ops_.size()) - 1;
    Fields f(at);
    Use use;
    f.required("dst", use.target, 0, last);
    if (is_edge)
      f.required("src", use.source, 0, last);
    else
      f.ignored({"src"});
    f.then([&]() -> Status {
       if (use.source < use.target) return {};
       return at.error("leads from node " + std::to_string(use.source) + " to node " +
                       std::to_string(use.target) + "; expected a later one: ids are in topological order");
     })
        .optional("term", use.term, 0)
        .optional("pos", use.position, 0)
        .required("channels", [&](const JsonCursor& channels) { return read_channels(channels, use); })
        .required("bytes", [&](const JsonCursor& bytes_at) -> Status {
          HEDDLE_ASSIGN_OR_RETURN(const auto bytes, bytes_at.as_int(0, kMaxBytes));
          const int64_t expected = shape_of(use.source).bytes_of(use.end - use.begin);
          if (bytes == expected) return {};
          return bytes_at.error("is " + std::to_string(bytes) + ", but these channels of the source have " +
                                std::to_string(expected));
        });
    HEDDLE_RETURN_IF_ERROR(f.finish());
    uses_.push_back(use);
    return {};
  }

  const Shape3& shape_of(int64_t source) const {
    return source < 0 ? input_shape_ : shapes_[static_cast<size_t>(source)];
  }

  Status read_channels(const JsonCursor& at, Use& use) const {
    HEDDLE_ASSIGN_OR_RETURN(const auto range, at.as_ints(0, shape_of(use.source).channels));
    if (range.size() != 2 || range[0] >= range[1]) return at.error("expected [begin, end) with begin < end");
    use.begin = range[0];
    use.end = range[1];
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

  static Status read_stages(const JsonCursor& stages_at, IosFile& file) {
    const Graph& graph = *file.graph;
    constexpr int64_t kNever = INT64_MAX;
    // When each op runs: stage, group within the stage, place within the group.
    std::vector<std::array<int64_t, 3>> when(graph.num_ops(), {kNever, 0, 0});
    const auto read_member = [&](const JsonCursor& member) -> Status {
      auto& groups = file.stages.back().groups;
      OpId op;
      HEDDLE_RETURN_IF_ERROR(take(member, op, graph.num_ops()));
      auto& place = when[op.index()];
      if (place[0] != kNever) return member.error("op " + std::to_string(op.value) + " is scheduled twice");
      place = {static_cast<int64_t>(file.stages.size()), static_cast<int64_t>(groups.size()),
               static_cast<int64_t>(groups.back().size())};
      for (const OpId before : graph.predecessors(op)) {
        const auto& b = when[before.index()];
        const bool done = b[0] < place[0] || (b[0] == place[0] && b[1] == place[1] && b[2] < place[2]);
        if (done) continue;
        return member.error("op " + std::to_string(op.value) + " reads from op " +
                            std::to_string(before.value) +
                            ", which is neither in an earlier stage nor before it in its group");
      }
      groups.back().push_back(op);
      return {};
    };
    const auto read_group = [&](const JsonCursor& group) -> Status {
      auto& ops = file.stages.back().groups.emplace_back();
      HEDDLE_RETURN_IF_ERROR(each(read_member, kMaxNodes)(group));
      return ops.empty() ? group.error("a group needs at least one op") : Status();
    };
    const auto read_stage = [&](const JsonCursor& at) -> Status {
      Fields f(at);
      IosStage& stage = file.stages.emplace_back();
      f.optional("block", stage.block, 0).optional("device", stage.device);
      f.required("groups", [&](const JsonCursor& groups) -> Status {
        HEDDLE_RETURN_IF_ERROR(each(read_group, kMaxNodes)(groups));
        return stage.groups.empty() ? groups.error("a stage needs at least one group") : Status();
      });
      return f.finish();
    };
    HEDDLE_RETURN_IF_ERROR(each(read_stage, kMaxNodes)(stages_at));
    for (size_t v = 0; v < when.size(); ++v) {
      if (when[v][0] == kNever) return stages_at.error("op " + std::to_string(v) + " is in no stage");
    }
    return {};
  }

  std::string name_;
  Shape3 input_shape_;
  std::vector<Op> ops_;
  std::set<std::string> names_;
  std::vector<Shape3> shapes_;  // of each node's output
  std::vector<int64_t> weights_;
  std::vector<Use> uses_;
  size_t inputs_ = 0;  // how many uses read the model's input
};

}  // namespace

bool is_ios_graph(const Json& json) {
  return first_has(json, "nodes", "macs") && json.contains("edges") &&
         (json["edges"].empty() || first_has(json, "edges", "channels"));
}

Result<IosFile> ios_graph_from_json(const Json& json) { return Reader().run(JsonCursor(json)); }

Result<IosFile> read_ios_graph(const std::string& path) { return read_json_file(path, ios_graph_from_json); }

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
