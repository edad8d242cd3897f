#include "heddle/graph/generators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "heddle/base/json.h"
#include "heddle/graph/graph_json.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<const Graph> layered(const LayeredOptions& options) {
  auto graph = generate_layered(options);
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  return graph.ok() ? *graph : nullptr;
}

std::string layered_error(const LayeredOptions& options) {
  const auto graph = generate_layered(options);
  return graph.ok() ? "no error" : graph.error().to_string();
}

// [op] number of ops on the longest path to it. This is its layer, since each op has a predecessor in the
// previous layer.
std::vector<int> layers_of(const Graph& graph) {
  std::vector<int> layer(graph.num_ops(), 0);
  for (const OpId op : graph.topological_order())
    for (const OpId p : graph.predecessors(op))
      layer[op.index()] = std::max(layer[op.index()], layer[p.index()] + 1);
  return layer;
}

struct Statistics {
  double mean_us = 0, mean_utilization = 0, skips = 0, last_layer_share = 0;
  std::vector<double> layer_sizes;
};

void add_layers(const std::vector<int>& layer, Statistics& s) {
  s.layer_sizes.resize(static_cast<size_t>(*std::max_element(layer.begin(), layer.end())) + 1);
  for (const int l : layer) s.layer_sizes[static_cast<size_t>(l)] += 1.0 / 30;
}

TEST(Layered, HasTheOpsLayersAndDependenciesAskedFor) {
  for (const int l : {6, 14, 22}) {
    LayeredOptions o;
    o.layers = l;
    const auto graph = layered(o);
    ASSERT_NE(graph, nullptr);
    EXPECT_EQ(graph->num_ops(), 200u);
    EXPECT_EQ(graph->num_edges(), 400u);
    const auto layer = layers_of(*graph);
    EXPECT_EQ(*std::max_element(layer.begin(), layer.end()), l - 1);
    EXPECT_EQ(std::count(layer.begin(), layer.end(), 0), 1);
    EXPECT_EQ(std::count(layer.begin(), layer.end(), l - 1), 1);
    EXPECT_EQ(layer[0], 0);
    EXPECT_EQ(layer[199], l - 1);
  }
}

TEST(Layered, FirstPassGivesEachLayerHalfTheNumberOfLayers) {
  const auto graph = layered({});
  const auto layer = layers_of(*graph);
  for (int l = 1; l < 13; ++l) {
    EXPECT_GE(std::count(layer.begin(), layer.end(), l), 7);
    for (int k = 0; k < 7; ++k) EXPECT_EQ(layer[static_cast<size_t>(1 + 7 * (l - 1) + k)], l);
  }
}

TEST(Layered, TimesLieOnTheGridAndTransfersFollowTheirSource) {
  LayeredOptions o;
  o.link_bytes_per_s = 25e9;
  const auto graph = layered(o);
  for (const Op& op : graph->ops()) {
    ASSERT_EQ(op.given_times.size(), 1u);
    const double us = op.given_times[0].us;
    EXPECT_EQ(op.given_times[0].device_class, "*");
    EXPECT_GE(us, 100);
    EXPECT_LE(us, 4000);
    EXPECT_NEAR(us * 10, std::round(us * 10), 1e-6);
    EXPECT_GE(op.utilization, 0.6);
    EXPECT_LE(op.utilization, 1);
    EXPECT_EQ(graph->tensor(op.outputs[0]).bytes, std::llround(std::max(100.0, 0.8 * us) * 1e-6 * 25e9));
  }
}

TEST(Layered, SameSeedSameGraphOtherSeedOtherGraph) {
  LayeredOptions o;
  const auto text = [](const Graph& g) { return graph_to_json(g).dump(); };
  const auto a = layered(o), b = layered(o);
  o.seed = 2;
  const auto c = layered(o);
  EXPECT_EQ(text(*a), text(*b));
  EXPECT_NE(text(*a), text(*c));
}

TEST(Layered, TimesOfDeviceClassesSpreadAroundTheirFactor) {
  LayeredOptions o;
  o.device_class_factors = {{"fast", 1}, {"slow", 3}};
  o.device_spread = 0.2;
  const auto graph = layered(o);
  for (const Op& op : graph->ops()) {
    ASSERT_EQ(op.given_times.size(), 2u);
    EXPECT_EQ(op.given_times[1].device_class, "slow");
    const double ratio = op.given_times[1].us / op.given_times[0].us;
    EXPECT_GE(ratio, 3 * 0.8 / 1.2 - 1e-9);
    EXPECT_LE(ratio, 3 * 1.2 / 0.8 + 1e-9);
  }
}

TEST(Layered, FillsUpToEveryDependencyThereCanBe) {
  LayeredOptions o;
  o.ops = 12;
  o.layers = 4;
  std::string error = layered_error([&] {
    auto p = o;
    p.deps = 1000;
    return p;
  }());
  ASSERT_THAT(error, HasSubstr("these layers allow only "));
  o.deps = std::stoi(error.substr(error.rfind(' ') + 1));
  EXPECT_EQ(layered(o)->num_edges(), static_cast<size_t>(o.deps));
}

TEST(Layered, HasTwiceAsManyDependenciesAsOpsWhereTheLayersAllowThem) {
  LayeredOptions o;
  EXPECT_EQ(layered(o)->num_edges(), 400U);
  EXPECT_THAT(layered(o)->name(), HasSubstr("-400-"));
  o.ops = 6;
  o.layers = 4;
  const auto few = layered(o);
  o.deps = static_cast<int>(few->num_edges());
  EXPECT_LT(o.deps, 2 * o.ops);
  EXPECT_EQ(few->name(), layered(o)->name());
  ++o.deps;
  EXPECT_THAT(layered_error(o), HasSubstr("these layers allow only"));
}

TEST(Layered, RefusesWhatCannotBe) {
  const auto error_with = [](auto change) {
    LayeredOptions o;
    change(o);
    return layered_error(o);
  };
  EXPECT_THAT(error_with([](auto& o) { o.deps = 300; }),
              HasSubstr("deps is 300, but neighbouring layers need 3"));
  EXPECT_THAT(error_with([](auto& o) { o.layers = 2; }), HasSubstr("layers is 2, expected 3 to"));
  EXPECT_THAT(error_with([](auto& o) { o.layers = 201; }), HasSubstr("too few for 201 layers"));
  EXPECT_THAT(error_with([](auto& o) {
                o.layers = 3;
                o.ops = 50;
              }),
              HasSubstr("too many for 3 layers of at most 30"));
  EXPECT_THAT(error_with([](auto& o) { o.min_us = -1; }), HasSubstr("min_us is -1, expected 0 to"));
  EXPECT_THAT(error_with([](auto& o) { o.max_us = std::nan(""); }),
              HasSubstr("max_us is nan, expected 100 to"));
  EXPECT_THAT(error_with([](auto& o) { o.min_utilization = 0; }), HasSubstr("min_utilization is 0"));
  EXPECT_THAT(error_with([](auto& o) { o.device_spread = 1; }), HasSubstr("device_spread is 1"));
  EXPECT_THAT(error_with([](auto& o) {
                o.device_class_factors = {{"", 1}};
              }),
              HasSubstr("a device class has no name"));
  EXPECT_THAT(error_with([](auto& o) {
                o.min_transfer_us = 1e12;
                o.link_bytes_per_s = 1e15;
              }),
              HasSubstr("too large together"));
}

TEST(Layered, LargeGraphsOfManyLayersAreMade) {
  LayeredOptions o;
  o.ops = 50'000;
  o.layers = 500;
  o.deps = 100'000;
  EXPECT_EQ(layered(o)->num_edges(), 100'000u);
}

Statistics published(const std::filesystem::path& folder) {
  Statistics s;
  for (int i = 2001; i <= 2030; ++i) {
    std::ifstream file(folder / ("sim_" + std::to_string(i) + ".json"));
    const Json json = Json::parse(file);
    std::vector<int> layer;
    for (const auto& node : json["nodes"]) {
      s.mean_us += node["time_ms"].get<double>() * 1000 / 6000;
      s.mean_utilization += node["gpu_utilization"].get<double>() / 6000;
      layer.push_back(node["layer"].get<int>());
    }
    for (const auto& edge : json["edges"])
      if (layer[edge["dst"].get<size_t>()] > layer[edge["src"].get<size_t>()] + 1) s.skips += 1.0 / 30;
    add_layers(layer, s);
  }
  return s;
}

Statistics generated() {
  Statistics s;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    LayeredOptions o;
    o.seed = seed;
    const auto graph = layered(o);
    const auto layer = layers_of(*graph);
    for (const Op& op : graph->ops()) {
      s.mean_us += op.given_times[0].us / 6000;
      s.mean_utilization += op.utilization / 6000;
    }
    for (const Edge& e : graph->edges())
      if (layer[e.dst.index()] > layer[e.src.index()] + 1) s.skips += 1.0 / 30;
    add_layers(layer, s);
  }
  return s;
}

TEST(Layered, StatisticsAreThoseOfThePublishedInstances) {
  const char* shared = std::getenv("HEDDLE_SHARED");
  const auto folder =
      std::filesystem::path(shared ? shared : HEDDLE_SOURCE_DIR "/../shared") / "data/hios/sim";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no instances at " << folder;
  const Statistics theirs = published(folder), ours = generated();
  // Means of 6,000 uniform draws: standard error 14.5 us and 0.0015.
  EXPECT_NEAR(ours.mean_us, theirs.mean_us, 90);
  EXPECT_NEAR(ours.mean_utilization, theirs.mean_utilization, 0.01);
  EXPECT_NEAR(ours.skips, theirs.skips, 4);
  ASSERT_EQ(ours.layer_sizes.size(), theirs.layer_sizes.size());
  for (size_t l = 0; l < ours.layer_sizes.size(); ++l)
    EXPECT_NEAR(ours.layer_sizes[l], theirs.layer_sizes[l], 4) << "layer " << l;
}

using Family = RandomWiredOptions::Family;
using Dependency = RandomWiredOptions::Dependency;

std::shared_ptr<const Graph> wired(const RandomWiredOptions& options) {
  auto graph = generate_random_wired(options);
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  return graph.ok() ? *graph : nullptr;
}

std::string module_of(const Graph& graph, OpId op) {
  const std::string& name = graph.op(op).name;
  return name.rfind("module", 0) == 0 ? name.substr(0, name.find('.')) : name;
}

bool is_node(const Graph& graph, OpId op) { return graph.op(op).name.find(".node") != std::string::npos; }

// Number of the module's nodes that `from` reaches without leaving the module.
int reach(const Graph& graph, OpId from, bool forwards) {
  std::vector<OpId> stack = {from};
  std::vector<bool> seen(graph.num_ops(), false);
  seen[from.index()] = true;
  int count = 0;
  while (!stack.empty()) {
    const OpId at = stack.back();
    stack.pop_back();
    count += is_node(graph, at);
    for (const OpId next : forwards ? graph.successors(at) : graph.predecessors(at)) {
      if (seen[next.index()] || module_of(graph, next) != module_of(graph, from)) continue;
      seen[next.index()] = true;
      stack.push_back(next);
    }
  }
  return count;
}

TEST(RandomWired, ModulesHaveTheEdgesOfTheirFamily) {
  for (const int nodes : {10, 32}) {
    for (const Family family : {Family::kWattsStrogatz, Family::kBarabasiAlbert}) {
      RandomWiredOptions o;
      o.family = family;
      o.nodes = nodes;
      o.modules = 3;
      const auto graph = wired(o);
      int inner = 0;
      for (const Edge& e : graph->edges()) inner += is_node(*graph, e.src) && is_node(*graph, e.dst);
      EXPECT_EQ(inner, 3 * (family == Family::kWattsStrogatz ? nodes * 4 / 2 : 5 * (nodes - 5)));
      EXPECT_EQ(graph->num_ops(), static_cast<size_t>(3 * (nodes + 2) + 3));
    }
  }
}

TEST(RandomWired, NeighbouringModulesAreTiedByOneEdgePerChannel) {
  for (int channels = 1; channels <= 4; ++channels) {
    for (const Dependency dependency : {Dependency::kSeries, Dependency::kWeak}) {
      RandomWiredOptions o;
      o.channels = channels;
      o.dependency = dependency;
      const auto graph = wired(o);
      std::map<std::string, int> ties;
      for (const Edge& e : graph->edges()) {
        const auto a = module_of(*graph, e.src), b = module_of(*graph, e.dst);
        if (a != b) ++ties[a + ">" + b];
      }
      for (int m = 0; m + 1 < 10; ++m)
        EXPECT_EQ(ties["module" + std::to_string(m) + ">module" + std::to_string(m + 1)], channels);
    }
  }
}

TEST(RandomWired, StronglyDependentModulesStemFromOneInputAndConvergeToOneOutput) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    RandomWiredOptions o;
    o.channels = 3;
    o.seed = seed;
    const auto graph = wired(o);
    std::map<std::string, int> from_input, to_output;
    for (size_t i = 0; i < graph->num_ops(); ++i) {
      const OpId op(i);
      const auto& name = graph->op(op).name;
      if (name.find(".in") != std::string::npos)
        from_input[module_of(*graph, op)] =
            std::max(from_input[module_of(*graph, op)], reach(*graph, op, true));
      if (name.find(".out") != std::string::npos)
        to_output[module_of(*graph, op)] =
            std::max(to_output[module_of(*graph, op)], reach(*graph, op, false));
    }
    for (const auto& [name, count] : from_input) EXPECT_EQ(count, 10) << name;
    for (const auto& [name, count] : to_output) EXPECT_EQ(count, 10) << name;
    EXPECT_EQ(graph->outputs().size(), 1u);
  }
}

TEST(RandomWired, WeaklyDependentModulesLeaveOpsThatReachNoOutput) {
  size_t dead_ends = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    RandomWiredOptions o;
    o.channels = 2;
    o.dependency = Dependency::kWeak;
    o.seed = seed;
    const auto graph = wired(o);
    dead_ends += graph->outputs().size() - 1;
    for (size_t i = 0; i < graph->num_ops(); ++i) EXPECT_FALSE(graph->op(OpId(i)).inputs.empty());
  }
  EXPECT_GT(dead_ends, 0u);
}

TEST(RandomWired, CrossingLeavesTheTotalsAndMakesSomeOpsFasterOnTheSlowerClass) {
  RandomWiredOptions o;
  o.device_class_factors = {{"fast", 1}, {"middle", 1.3}, {"slow", 7}};
  o.device_crossing = 0.7;
  const auto graph = wired(o);
  std::vector<double> total(3, 0);
  int crossed = 0;
  for (const Op& op : graph->ops()) {
    ASSERT_EQ(op.given_times.size(), 3u);
    for (size_t c = 0; c < 3; ++c) total[c] += op.given_times[c].us;
    crossed += op.given_times[1].us < op.given_times[0].us ? 1 : 0;
  }
  EXPECT_NEAR(total[1], 1.3 * total[0], 1e-9 * total[1]);
  EXPECT_NEAR(total[2], 7 * total[0], 1e-9 * total[2]);
  EXPECT_GT(crossed, 10);
  o.device_crossing = 0;
  const auto uncrossed = wired(o);
  for (const Op& op : uncrossed->ops()) EXPECT_GE(op.given_times[1].us, op.given_times[0].us * (1 - 1e-9));
  o.device_crossing = -1;
  EXPECT_FALSE(generate_random_wired(o).ok());
}

TEST(RandomWired, SameSeedSameGraph) {
  RandomWiredOptions o;
  o.nodes = 32;
  EXPECT_EQ(graph_to_json(*wired(o)).dump(), graph_to_json(*wired(o)).dump());
}

TEST(RandomWired, RefusesWhatCannotBe) {
  const auto error_with = [](auto change) {
    RandomWiredOptions o;
    change(o);
    const auto graph = generate_random_wired(o);
    return graph.ok() ? "no error" : graph.error().to_string();
  };
  EXPECT_THAT(error_with([](auto& o) { o.er_p = 0; }),
              HasSubstr("no connected random graph of 10 nodes was found; raise er_p"));
  EXPECT_THAT(error_with([](auto& o) { o.channels = 11; }), HasSubstr("channels is 11, expected 1 to 10"));
  EXPECT_THAT(error_with([](auto& o) { o.modules = 0; }), HasSubstr("modules is 0"));
  EXPECT_THAT(error_with([](auto& o) {
                o.family = Family::kBarabasiAlbert;
                o.nodes = 5;
              }),
              HasSubstr("ba_m is 5, expected 1 to 4"));
  EXPECT_THAT(error_with([](auto& o) {
                o.family = Family::kWattsStrogatz;
                o.ws_k = 3;
              }),
              HasSubstr("expected an even number"));
  EXPECT_THAT(error_with([](auto& o) {
                o.batch = 1 << 20;
                o.image = 1 << 14;
              }),
              HasSubstr("batch * width * image^2"));
  EXPECT_THAT(error_with([](auto& o) {
                o.nodes = 2000;
                o.modules = 1000;
              }),
              HasSubstr("modules * nodes^2"));
}

}  // namespace
}  // namespace heddle
