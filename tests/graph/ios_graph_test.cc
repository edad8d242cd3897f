#include "heddle/graph/ios_graph.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "support/replaced.h"

namespace heddle {
namespace {

using test::replaced;

// The two halves of a convolution's output feed a pool and a fused op, which are concatenated and summed.
constexpr char kSmall[] = R"({"name": "small", "dtype": "float32", "input_shape": [3, 8, 8], "num_nodes": 4,
 "num_edges": 5, "nodes": [
  {"id": 0, "name": "a", "block": 0, "op": "conv", "attrs": {"groups": 1}, "macs": 1000, "weight_bytes": 100,
   "in_shape": [3, 8, 8], "out_shape": [8, 4, 4], "in_bytes": 768, "out_bytes": 512, "time_ms": null},
  {"id": 1, "name": "b", "block": 0, "op": "pool", "attrs": {"pool_type": "global_avg"}, "macs": 0,
   "weight_bytes": 0, "in_shape": [2, 4, 4], "out_shape": [2, 4, 4], "in_bytes": 128, "out_bytes": 128},
  {"id": 2, "name": "c", "block": 0, "op": "relu+conv", "sub": [{"op": "relu", "attrs": {}},
   {"op": "conv", "attrs": {"groups": 8}}], "macs": 50, "weight_bytes": 8, "in_shape": [6, 4, 4],
   "out_shape": [2, 4, 4], "in_bytes": 384, "out_bytes": 128},
  {"id": 3, "name": "d", "block": 1, "op": "identity", "macs": 0, "weight_bytes": 0, "in_shape": [4, 4, 4],
   "out_shape": [4, 4, 4], "in_bytes": 640, "out_bytes": 256, "time_ms": 0.25, "gpu_utilization": 0.5}],
 "edges": [
  {"src": 0, "dst": 1, "term": 0, "pos": 0, "channels": [0, 2], "bytes": 128},
  {"src": 0, "dst": 2, "term": 0, "pos": 0, "channels": [2, 8], "bytes": 384},
  {"src": 1, "dst": 3, "term": 1, "pos": 0, "channels": [0, 2], "bytes": 128},
  {"src": 2, "dst": 3, "term": 0, "pos": 0, "channels": [0, 2], "bytes": 128},
  {"src": 0, "dst": 3, "term": 0, "pos": 1, "channels": [0, 8], "bytes": 512}],
 "graph_inputs": [{"dst": 0, "term": 0, "pos": 0, "channels": [0, 3], "bytes": 768}],
 "stages": [{"block": 0, "groups": [[0]]}, {"block": 0, "groups": [[1], [2]]},
            {"block": 1, "groups": [[3]]}]})";

Result<IosFile> read(const std::string& text) {
  const auto json = parse_json(text);
  if (!json.ok()) return json.error();
  return ios_graph_from_json(*json);
}

TEST(IosGraph, ReadsOpsSlicesAndStages) {
  const auto file = read(kSmall);
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  const Graph& g = *file->graph;
  ASSERT_EQ(g.num_ops(), 4u);
  EXPECT_EQ(g.op(OpId(0)).type, "Convolution");
  EXPECT_EQ(g.op(OpId(0)).flops, 2000);
  EXPECT_EQ(g.op(OpId(0)).bytes_accessed, 768 + 100 + 512);
  EXPECT_EQ(g.op(OpId(1)).type, "AvgPool");
  EXPECT_EQ(g.op(OpId(2)).type, "Relu+GroupConvolution");
  EXPECT_EQ(g.op(OpId(3)).given_times[0].us, 250);
  EXPECT_EQ(g.op(OpId(3)).utilization, 0.5);
  // The convolution's output is split where its readers' slices begin and end.
  ASSERT_EQ(g.op(OpId(0)).outputs.size(), 2u);
  EXPECT_EQ(g.tensor(g.op(OpId(0)).outputs[0]).bytes, 128);
  EXPECT_EQ(g.tensor(g.op(OpId(0)).outputs[1]).bytes, 384);
  // Terms in order, with summed values inside a term: c, a's two parts, then b.
  const auto& inputs = g.op(OpId(3)).inputs;
  ASSERT_EQ(inputs.size(), 4u);
  EXPECT_EQ(g.tensor(inputs[0]).producer, OpId(2));
  EXPECT_EQ(g.tensor(inputs[3]).producer, OpId(1));
  EXPECT_EQ(g.total_param_bytes(), 108);
  ASSERT_EQ(file->stages.size(), 3u);
  EXPECT_EQ(file->stages[1].groups, (std::vector<std::vector<OpId>>{{OpId(1)}, {OpId(2)}}));
}

TEST(IosGraph, RecognisesItsFilesAndNoOthers) {
  EXPECT_TRUE(is_ios_graph(*parse_json(kSmall)));
  EXPECT_FALSE(is_ios_graph(*parse_json(R"({"nodes": [{"id": 0}], "edges": []})")));
  EXPECT_FALSE(is_ios_graph(*parse_json(R"({"nodes": 3, "edges": []})")));
  EXPECT_FALSE(is_ios_graph(*parse_json("[]")));
}

TEST(IosGraph, WritesStagesThatItReadsBack) {
  const auto document = *parse_json(kSmall);
  auto file = *ios_graph_from_json(document);
  file.stages = {{0, {{OpId(0), OpId(1)}}, "gpu1"}, {2, {{OpId(2)}}, ""}, {3, {{OpId(3)}}, ""}};
  const auto again = ios_graph_from_json(with_stages(document, file.stages));
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  ASSERT_EQ(again->stages.size(), 3u);
  EXPECT_EQ(again->stages[0].device, "gpu1");
  EXPECT_EQ(again->stages[0].groups, file.stages[0].groups);
  EXPECT_EQ(again->stages[1].block, 2);
}

TEST(IosGraph, RefusesWhatIsMalformedAndSaysWhere) {
  const struct {
    const char *what, *with, *message;
  } kCases[] = {
      {"\"id\": 1", "\"id\": 2", "$.nodes[1].id: is 2, expected 1"},
      {"\"name\": \"b\"", "\"name\": \"a\"", "a second node is named 'a'"},
      {"\"macs\": 1000", "\"macs\": -1", "$.nodes[0].macs"},
      {"\"macs\": 1000", "\"sub\": [], \"macs\": 1000", "$.nodes[0].sub: is empty"},
      {"\"out_shape\": [8, 4, 4]", "\"out_shape\": [8, 4]", "$.nodes[0].out_shape: has 2 sides"},
      {"\"out_shape\": [8, 4, 4]", "\"out_shape\": [16777216, 16777216, 16777216]", "more than 2^50 bytes"},
      {"\"out_bytes\": 512", "\"out_bytes\": 511", "$.nodes[0].out_bytes: is 511"},
      {"\"dst\": 1,", "\"dst\": 0,", "expected a later one"},
      {"\"channels\": [0, 2]", "\"channels\": [0, 9]", "$.edges[0].channels"},
      {"\"channels\": [0, 2]", "\"channels\": [2, 2]", "$.edges[0].channels: expected [begin, end)"},
      {"\"bytes\": 384", "\"bytes\": 383", "$.edges[1].bytes: is 383"},
      {"\"num_nodes\": 4", "\"num_nodes\": 5", "$.num_nodes: is 5, but there are 4"},
      {"\"num_edges\": 5", "\"num_edges\": 4", "$.num_edges"},
      {"\"float32\"", "\"float16\"", "expected \"float32\""},
      {"\"gpu_utilization\": 0.5", "\"gpu_utilization\": 1.5", "$.nodes[3].gpu_utilization"},
      {"\"time_ms\": 0.25", "\"time_ms\": \"fast\"", "$.nodes[3].time_ms"},
      {"[[1], [2]]", "[[1], [1]]", "op 1 is scheduled twice"},
      {"[[1], [2]]", "[[1]]", "op 3 reads from op 2"},
      {"[[0]]", "[[3]]", "op 3 reads from op 0, which is neither in an earlier stage"},
      {"[[1], [2]]", "[[1], [2], []]", "$.stages[1].groups[2]: a group needs at least one op"},
      {",\n            {\"block\": 1, \"groups\": [[3]]}", "", "$.stages: op 3 is in no stage"},
      {"[[0]]", "[[7]]", "$.stages[0].groups[0][0]"},
      {"\"weight_bytes\"", "\"weights\"", "weights"},
  };
  for (const auto& c : kCases) {
    const auto file = read(replaced(kSmall, c.what, c.with));
    ASSERT_FALSE(file.ok()) << c.with;
    EXPECT_EQ(file.error().code(), Code::kInvalidInput);
    EXPECT_NE(file.error().to_string().find(c.message), std::string::npos) << file.error().to_string();
  }
}

TEST(IosGraph, EveryTruncationIsAnErrorAndNoCrash) {
  const std::string text = kSmall;
  for (size_t n = 0; n < text.size(); ++n) EXPECT_FALSE(read(text.substr(0, n)).ok()) << n;
}

TEST(IosGraph, ReadsThePublicGraphs) {
  const char* shared = std::getenv("HEDDLE_SHARED");
  const auto folder = std::string(shared ? shared : HEDDLE_SOURCE_DIR "/../shared") + "/data/hios/";
  if (!file_exists(folder + "README.md")) GTEST_SKIP() << "no public data; set HEDDLE_SHARED";
  const struct {
    const char* name;
    size_t ops, edges;
    double macs;
  } kFiles[] = {{"inception_v3", 119, 153, 5711168096.0},
                {"squeezenet", 50, 65, 1187100160.0},
                {"randwire_large", 120, 260, 7821761024.0},
                {"randwire_xlarge", 325, 3210, 0}};
  for (const auto& f : kFiles) {
    const auto file = read_ios_graph(folder + f.name + ".json");
    ASSERT_TRUE(file.ok()) << file.error().to_string();
    EXPECT_EQ(file->graph->num_ops(), f.ops);
    EXPECT_EQ(file->graph->num_edges(), f.edges);
    if (f.macs > 0) {
      EXPECT_EQ(file->graph->total_flops(), 2 * f.macs);
    }
    EXPECT_TRUE(file->stages.empty());
  }
}

}  // namespace
}  // namespace heddle
