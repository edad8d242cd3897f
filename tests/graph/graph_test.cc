#include "heddle/graph/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "heddle/base/random.h"
#include "random_dag.h"

namespace heddle {
namespace {

using testing::HasSubstr;

OpId op_id(size_t v) { return OpId(v); }
TensorId tensor_id(size_t v) { return TensorId(v); }

Op named(std::string name, std::vector<TensorId> inputs = {}) {
  Op op;
  op.name = std::move(name);
  op.type = "T";
  op.inputs = std::move(inputs);
  return op;
}

Tensor floats(std::string name, int64_t count) {
  Tensor tensor;
  tensor.name = std::move(name);
  tensor.shape = {count};
  return tensor;
}

// The error of building a graph of one op "a" with output "t" after a change.
std::string error_after(const std::function<void(Op&, Tensor&)>& change) {
  GraphBuilder builder("g");
  Op op = named("a");
  Tensor tensor = floats("t", 1);
  change(op, tensor);
  builder.add_op(op, {tensor});
  const auto graph = builder.build();
  return graph.ok() ? "" : graph.error().to_string();
}

TEST(GraphBuilder, DerivesEdgesConsumersAndOrder) {
  GraphBuilder builder("g");
  const TensorId x = builder.add_input("x", DType::kF32, {2});
  const OpId a = builder.add_op(named("a", {x, x}), {floats("p", 1), floats("q", 2)});
  const auto made = std::vector<TensorId>(builder.outputs_of(a).begin(), builder.outputs_of(a).end());
  const OpId b = builder.add_op(named("b", {made[0], made[1], made[0]}), {});
  builder.add_output(made[1]);
  const auto graph = builder.build();
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  ASSERT_EQ((*graph)->num_edges(), 1u);
  EXPECT_EQ((*graph)->edges()[0].bytes, 12) << "each tensor once";
  EXPECT_EQ((*graph)->tensor(x).consumers, std::vector<OpId>{a});
  EXPECT_EQ((*graph)->predecessors(b)[0], a);
  EXPECT_EQ((*graph)->find_op("b"), b);
  EXPECT_FALSE((*graph)->find_op("c").valid());
  EXPECT_EQ((*graph)->find_tensor("q"), made[1]);
}

TEST(GraphBuilder, OrdersOpsThatAreAddedBackwards) {
  GraphBuilder builder("g");
  builder.add_op(named("late"), {floats("t0", 1)});
  builder.add_op(named("early"), {floats("t1", 1)});
  builder.set_inputs(op_id(0), {tensor_id(1)});
  const auto graph = builder.build();
  ASSERT_TRUE(graph.ok());
  EXPECT_EQ((*graph)->topological_order()[0], op_id(1));
  EXPECT_EQ((*graph)->topological_position(op_id(0)), 1);
}

TEST(GraphBuilder, NamesTheOpsOfACycle) {
  GraphBuilder builder("g");
  builder.add_op(named("a"), {floats("ta", 1)});
  builder.add_op(named("b", {tensor_id(0)}), {floats("tb", 1)});
  builder.add_op(named("c", {tensor_id(1)}), {floats("tc", 1)});
  builder.set_inputs(op_id(0), {tensor_id(1)});
  const auto graph = builder.build();
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.error().to_string(), "graph 'g': the graph has a cycle: 'a' -> 'b' -> 'a'");
}

TEST(GraphBuilder, RefusesAnOpThatReadsItself) {
  EXPECT_THAT(error_after([](Op& op, Tensor&) { op.inputs = {tensor_id(0)}; }),
              HasSubstr("cycle: 'a' -> 'a'"));
}

TEST(GraphBuilder, RefusesWrongIdsAndNumbersByName) {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  const auto op = [](auto change) { return error_after([=](Op& o, Tensor&) { change(o); }); };
  const auto tensor = [](auto change) { return error_after([=](Op&, Tensor& t) { change(t); }); };
  EXPECT_EQ(op([](Op&) {}), "");
  EXPECT_THAT(op([](Op& o) { o.inputs = {tensor_id(7)}; }), HasSubstr("op 'a': input 0 is tensor 7"));
  EXPECT_THAT(op([](Op& o) { o.inputs = {TensorId()}; }), HasSubstr("input 0 is tensor -1"));
  EXPECT_THAT(op([](Op& o) { o.params = {ParamId(size_t{0})}; }), HasSubstr("parameter 0 is number 0"));
  EXPECT_THAT(op([](Op& o) { o.flops = -1; }), HasSubstr("flops"));
  EXPECT_THAT(op([&](Op& o) { o.flops = nan; }), HasSubstr("flops"));
  EXPECT_THAT(op([](Op& o) { o.flops = 1e31; }), HasSubstr("1e30"));
  EXPECT_THAT(op([](Op& o) { o.bytes_accessed = -1; }), HasSubstr("bytes_accessed"));
  EXPECT_THAT(op([](Op& o) { o.utilization = 0; }), HasSubstr("utilization"));
  EXPECT_THAT(op([&](Op& o) { o.utilization = nan; }), HasSubstr("utilization"));
  EXPECT_THAT(op([&](Op& o) { o.given_times = {{"gpu", infinity}}; }), HasSubstr("device class 'gpu'"));
  EXPECT_THAT(op([](Op& o) { o.given_times = {{"gpu", 1}, {"gpu", 2}}; }), HasSubstr("two given times"));
  EXPECT_THAT(op([](Op& o) { o.members = {op_id(1), op_id(0)}; }), HasSubstr("ascending"));
  EXPECT_THAT(op([](Op& o) { o.name = ""; }), HasSubstr("empty name"));
  EXPECT_THAT(tensor([](Tensor& t) { t.name = ""; }), HasSubstr("empty name"));
  EXPECT_THAT(tensor([](Tensor& t) { t.shape = {-1}; }), HasSubstr("tensor 't'"));
  EXPECT_THAT(tensor([](Tensor& t) { t.bytes = -5; }), HasSubstr("bytes is -5"));
  EXPECT_THAT(tensor([](Tensor& t) { t.shape = {int64_t{1} << 59}; }), HasSubstr("2^60"));
}

TEST(GraphBuilder, RefusesTwoOfOneName) {
  GraphBuilder builder("g");
  builder.add_op(named("a"), {});
  builder.add_op(named("a"), {});
  EXPECT_THAT(builder.build().error().to_string(), HasSubstr("two ops are named 'a' (numbers 0 and 1)"));
}

TEST(GraphBuilder, BuildsAnEmptyGraphAndIsEmptyAfterwards) {
  GraphBuilder builder("g");
  builder.add_op(named("a"), {});
  ASSERT_TRUE(builder.build().ok());
  const auto empty = builder.build();
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ((*empty)->num_ops(), 0u);
}

TEST(Graph, FindsEveryNameAmongHostileOnes) {
  // Prefixes of one another, bytes above 127 and zeros: cases that could mislead the abbreviated comparison.
  const std::vector<std::string> names = {"p",
                                          "pa",
                                          "paaaaaaaa",
                                          "paaaaaaaab",
                                          "p\x80",
                                          std::string("p\0", 2),
                                          std::string("p\0\0", 3),
                                          "p\xff\xff",
                                          "paaaaaaa"};
  GraphBuilder builder("g");
  for (const auto& name : names) builder.add_op(named(name), {});
  const auto graph = builder.build();
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  for (size_t i = 0; i < names.size(); ++i) EXPECT_EQ((*graph)->find_op(names[i]), op_id(i));
}

TEST(Graph, AdjacencyAgreesWithTensorsOnRandomGraphs) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const auto graph = generate_random_dag(30, 0.2, seed);
    for (const Edge& e : graph->edges()) {
      int64_t bytes = 0;
      for (const TensorId output : graph->op(e.src).outputs) {
        const auto& readers = graph->tensor(output).consumers;
        if (std::find(readers.begin(), readers.end(), e.dst) != readers.end())
          bytes += graph->tensor(output).bytes;
      }
      ASSERT_EQ(e.bytes, bytes);
      ASSERT_LT(graph->topological_position(e.src), graph->topological_position(e.dst));
    }
    size_t in = 0, out = 0;
    for (size_t v = 0; v < graph->num_ops(); ++v) {
      in += graph->predecessors(op_id(v)).size();
      out += graph->successors(op_id(v)).size();
      const auto edges = graph->out_edges(op_id(v));
      for (size_t i = 0; i < edges.size(); ++i) ASSERT_EQ(edges[i].dst, graph->successors(op_id(v))[i]);
    }
    ASSERT_EQ(in, graph->num_edges());
    ASSERT_EQ(out, graph->num_edges());
  }
}

}  // namespace
}  // namespace heddle
