#include "heddle/graph/graph_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "heddle/base/json.h"
#include "heddle/base/random.h"
#include "heddle/graph/coarsen.h"
#include "random_dag.h"

namespace heddle {
namespace {

using testing::HasSubstr;

void expect_round_trip(const Graph& graph) {
  // Converts to text and back, as a file would.
  const auto json = parse_json(graph_to_json(graph).dump());
  ASSERT_TRUE(json.ok());
  const auto again = graph_from_json(JsonCursor(*json));
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  EXPECT_EQ(graph_to_json(**again), graph_to_json(graph));
  ASSERT_EQ((*again)->num_tensors(), graph.num_tensors());
  for (size_t t = 0; t < graph.num_tensors(); ++t) {
    EXPECT_EQ((*again)->tensor(TensorId(t)).name, graph.tensor(TensorId(t)).name)
        << "tensors keep their numbers";
    EXPECT_EQ((*again)->tensor(TensorId(t)).bytes, graph.tensor(TensorId(t)).bytes);
    EXPECT_EQ((*again)->tensor(TensorId(t)).consumers, graph.tensor(TensorId(t)).consumers);
  }
  for (size_t v = 0; v < graph.num_ops(); ++v) {
    EXPECT_EQ((*again)->op(OpId(v)).inputs, graph.op(OpId(v)).inputs);
    EXPECT_EQ((*again)->op(OpId(v)).params, graph.op(OpId(v)).params);
    EXPECT_EQ((*again)->op(OpId(v)).flops, graph.op(OpId(v)).flops);
    EXPECT_EQ((*again)->op(OpId(v)).utilization, graph.op(OpId(v)).utilization);
    EXPECT_EQ((*again)->op(OpId(v)).members, graph.op(OpId(v)).members);
  }
}

// Inputs between ops, ops without outputs, byte sizes that do not follow from the shape, uneven numbers.
std::shared_ptr<const Graph> odd_graph(uint64_t seed) {
  Random random(seed);
  GraphBuilder builder("odd \"name\"\n");
  std::vector<TensorId> made;
  const int count = static_cast<int>(random.below(12));
  for (int i = 0; i < count; ++i) {
    Tensor tensor;
    tensor.name = "t" + std::to_string(i);
    tensor.dtype = static_cast<DType>(random.below(20));
    tensor.shape = {random.between(0, 5), 3};
    if (random.chance(0.3)) tensor.bytes = random.between(1, 1000);
    if (random.chance(0.3)) {
      made.push_back(builder.add_input(tensor));
      continue;
    }
    Op op;
    op.name = "op" + std::to_string(i);
    for (const TensorId t : made)
      if (random.chance(0.4)) op.inputs.push_back(t);
    op.utilization = 1 - random.unit();
    op.flops = random.unit() * 1e20;
    op.params = {builder.add_param({"p" + std::to_string(i), random.between(0, 9)})};
    op.onnx_names = {"", "n"};
    op.members = {OpId(static_cast<size_t>(i))};
    const bool sink = random.chance(0.3);
    const OpId id = builder.add_op(op, sink ? std::vector<Tensor>{} : std::vector<Tensor>{tensor});
    if (!sink) made.push_back(builder.outputs_of(id)[0]);
  }
  for (const TensorId t : made)
    if (random.chance(0.5)) builder.add_output(t), builder.add_output(t);
  auto graph = builder.build();
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  return graph.ok() ? *graph : nullptr;
}

TEST(GraphJson, RoundTripsRandomAndCoarsenedGraphs) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const auto graph = generate_random_dag(static_cast<int>(seed), 0.2, seed);
    expect_round_trip(*graph);
    const auto coarse = coarsen(*graph, group_to_size(*graph, 5));
    ASSERT_TRUE(coarse.ok());
    expect_round_trip(**coarse);
  }
}

TEST(GraphJson, RoundTripsOddGraphs) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const auto graph = odd_graph(seed);
    ASSERT_NE(graph, nullptr);
    expect_round_trip(*graph);
  }
}

std::string error_after(const std::function<void(Json&)>& change) {
  Json json = *parse_json(R"({"format": "heddle-graph", "version": 1, "name": "g",
    "inputs": [{"name": "image", "dtype": "f32", "shape": [1, 3]}], "params": [{"name": "weight", "bytes": 4}],
    "ops": [{"name": "a", "type": "T", "inputs": ["image"], "params": ["weight"],
             "outputs": [{"name": "y", "dtype": "f32", "shape": [1]}]}], "outputs": ["y"]})");
  change(json);
  const auto graph = graph_from_json(JsonCursor(json));
  return graph.ok() ? "" : graph.error().to_string();
}

TEST(GraphJson, NamesThePlaceOfEachMistake) {
  EXPECT_EQ(error_after([](Json&) {}), "");
  EXPECT_THAT(error_after([](Json& j) { j["opps"] = 1; }), HasSubstr("ops"));
  EXPECT_THAT(error_after([](Json& j) { j["format"] = "heddle-plan"; }), HasSubstr("$.format"));
  EXPECT_THAT(error_after([](Json& j) { j["version"] = 2; }), HasSubstr("reads up to version 1"));
  EXPECT_THAT(error_after([](Json& j) { j.erase("ops"); }), HasSubstr("ops"));
  EXPECT_THAT(error_after([](Json& j) { j["ops"][0]["inputs"][0] = "imgae"; }),
              AllOf(HasSubstr("$.ops[0].inputs[0]"), HasSubstr("did you mean 'image'")));
  EXPECT_THAT(error_after([](Json& j) { j["ops"][0]["params"][0] = "w"; }), HasSubstr("$.ops[0].params[0]"));
  EXPECT_THAT(error_after([](Json& j) { j["ops"][0]["flops"] = -1; }), HasSubstr("$.ops[0].flops"));
  EXPECT_THAT(error_after([](Json& j) { j["ops"][0]["utilization"] = 0; }), HasSubstr("utilization"));
  EXPECT_THAT(error_after([](Json& j) { j["ops"][0]["given_times"] = Json::array(); }),
              HasSubstr("given_times"));
  EXPECT_THAT(error_after([](Json& j) { j["ops"][0]["members"] = {1, 0}; }), HasSubstr("ascending"));
  EXPECT_THAT(error_after([](Json& j) { j["ops"][0]["inputs"] = {"y"}; }), HasSubstr("cycle"));
  EXPECT_THAT(error_after([](Json& j) { j["inputs"][0]["dtype"] = "float"; }),
              HasSubstr("$.inputs[0].dtype"));
  EXPECT_THAT(error_after([](Json& j) { j["inputs"][0]["shape"] = {-1}; }), HasSubstr("$.inputs[0].shape"));
  EXPECT_THAT(error_after([](Json& j) { j["inputs"][0]["shape"] = {INT64_MAX, 4}; }), HasSubstr("2^60"));
  EXPECT_THAT(error_after([](Json& j) { j["inputs"][0]["bytes"] = 0; }), HasSubstr("$.inputs[0].bytes"));
  EXPECT_THAT(error_after([](Json& j) { j["inputs"][0]["after_ops"] = 2; }), HasSubstr("after_ops"));
  EXPECT_THAT(error_after([](Json& j) { j["inputs"].push_back(j["inputs"][0]); }), HasSubstr("'image'"));
  EXPECT_THAT(error_after([](Json& j) { j["params"].push_back(j["params"][0]); }), HasSubstr("$.params[1]"));
  EXPECT_THAT(error_after([](Json& j) { j["outputs"] = {"z"}; }), HasSubstr("$.outputs[0]"));
  EXPECT_THAT(error_after([](Json& j) { j = 3; }), HasSubstr("$"));
}

TEST(GraphJson, SurvivesEveryTruncationAndManyFlippedBytes) {
  const std::string text = graph_to_json(*generate_random_dag(6, 0.5, 1)).dump();
  const auto read = [](const std::string& damaged) {
    const auto json = parse_json(damaged);
    if (json.ok()) (void)graph_from_json(JsonCursor(*json)).ok();
  };
  for (size_t length = 0; length < text.size(); ++length) {
    EXPECT_FALSE(parse_json(text.substr(0, length)).ok());
  }
  Random random(1);
  for (int i = 0; i < 5000; ++i) {
    std::string damaged = text;
    damaged[random.below(damaged.size())] = static_cast<char>(random.below(256));
    read(damaged);
  }
}

TEST(GraphJson, NamesAFileThatIsNotThere) {
  const auto graph = read_graph_file("no/such/graph.json");
  ASSERT_FALSE(graph.ok());
  EXPECT_THAT(graph.error().to_string(), HasSubstr("no/such/graph.json"));
}

}  // namespace
}  // namespace heddle
