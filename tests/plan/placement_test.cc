// Placements as plans: their values by hand, what the checker finds, and the figures of the workloads' authors.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "heddle/base/file.h"
#include "heddle/plan/bounds.h"
#include "heddle/plan/placement_workload.h"
#include "workload_support.h"

namespace heddle::test {
namespace {

constexpr PlacementOptions kLatency{};
constexpr PlacementOptions kTwoPieces{.pieces = 2};
constexpr PlacementOptions kStream{.objective = Objective::kThroughput};
constexpr PlacementOptions kContiguousStream{.objective = Objective::kThroughput, .contiguous = true};

// 0 -> 1 -> 3, 0 -> 2 -> 3; node i takes 1 + i on an accelerator and 10 on a CPU, moving an output 0.5.
Json diamond() {
  Json json = {{"maxFPGAs", 2}, {"maxCPUs", 1}, {"maxSizePerFPGA", 3}};
  for (int i = 0; i < 4; ++i)
    json["nodes"].push_back({{"id", i}, {"cpuLatency", 10}, {"fpgaLatency", 1 + i}, {"size", 1}});
  for (const auto& [u, v] : {std::pair{0, 1}, {0, 2}, {1, 3}, {2, 3}})
    json["edges"].push_back({{"sourceId", u}, {"destId", v}, {"cost", 0.5}});
  return json;
}
Problem problem_of(const Json& json, const PlacementOptions& options) {
  return made(placement_workload_from_json(json, "diamond", options));
}
WorkloadPlacement placed(const std::vector<int32_t>& devices, const std::vector<int32_t>& pieces = {}) {
  WorkloadPlacement placement;
  for (const int32_t d : devices) placement.device.emplace_back(d);
  placement.piece = pieces;
  return placement;
}

struct Evaluated {
  Timeline timeline;
  CheckReport report;
  double value = 0;  // in the files' unit
};
Evaluated evaluated(const Problem& problem, const WorkloadPlacement& placement) {
  const Plan plan = made(plan_of_placement(problem, placement));
  Evaluated result;
  result.timeline = made(evaluate(problem, plan));
  result.report = check(problem, plan, result.timeline);
  result.value = objective_us(problem, result.timeline) / kPlacementUnitUs;
  return result;
}
std::string finding(const Problem& problem, const WorkloadPlacement& placement) {
  const auto result = evaluated(problem, placement);
  if (result.report.ok()) return "";
  const Finding& first = result.report.findings[0];
  return std::string(violation_name(first.kind)) + ": " + first.message;
}

TEST(Placement, LatencyByHand) {
  const Problem p = problem_of(diamond(), kLatency);
  // 0 on the CPU (10), {1,2} on an accelerator: in 0.5 once, work 2 + 3, out 0.5 + 0.5: 16.5; 3 on the CPU.
  EXPECT_DOUBLE_EQ(evaluated(p, placed({2, 0, 0, 2})).value, 26.5);
  // {0,1} then {2,3}: 1 + 2 + 0.5 + 0.5 = 4; both come in: 0.5 + 0.5 + 3 + 4 = 8.
  const auto split = evaluated(p, placed({0, 0, 1, 1}));
  EXPECT_DOUBLE_EQ(split.value, 12);
  EXPECT_EQ(split.timeline.finish_us, (std::vector<double>{4000, 12000}));
  EXPECT_TRUE(split.report.ok());
  EXPECT_LE(lower_bound(p).us, 8000);
}

// 0 on the CPU until 10; 1 and 2 at once, both until 20.
TEST(Placement, CpusRunEverythingAtOnceForLatency) {
  const Problem p = problem_of(diamond(), kLatency);
  const auto all = evaluated(p, placed({2, 2, 2, 2}));
  EXPECT_DOUBLE_EQ(all.value, 30);
  EXPECT_TRUE(all.report.ok());
}

TEST(Placement, PiecesOfOneAcceleratorRunInTheirOrder) {
  // {0} and {2,3} on accelerator 0, {1} on accelerator 1: 1 + 0.5; 0.5 + 2 + 0.5 = 4.5; 0.5 + 0.5 + 3 + 4.
  const WorkloadPlacement split = placed({0, 1, 0, 0}, {0, 0, 1, 1});
  const Problem two = problem_of(diamond(), kTwoPieces);
  EXPECT_DOUBLE_EQ(evaluated(two, split).value, 12.5);
  EXPECT_EQ(finding(two, split), "");
  EXPECT_NE(finding(problem_of(diamond(), kLatency), split).find("placement: device 'accelerator0' has more"),
            std::string::npos);
  EXPECT_FALSE(plan_of_placement(two, placed({0, 1, 0, 0}, {1, 0, 0, 0})).ok());
}

TEST(Placement, MaxLoadByHand) {
  const Problem p = problem_of(diamond(), kStream);
  const auto split = evaluated(p, placed({0, 1, 0, 2}));
  // 0: work 1 + 3; outputs of 0 and 2 leave. 1: work 2, 0 comes in, 1 leaves. CPU: no transfer.
  EXPECT_EQ(split.timeline.device_busy_us, (std::vector<double>{5000, 3000, 10000}));
  EXPECT_EQ(split.value, 10);
  EXPECT_TRUE(split.report.ok());
}

// Node 0's output is read by two segments of accelerator 1, before and after a detour: it comes in once.
TEST(Placement, AStreamMovesATensorIntoADeviceOnce) {
  Json json = diamond();
  json["edges"] = Json::array();
  for (const auto& [u, v] : {std::pair{0, 1}, {1, 2}, {2, 3}, {0, 3}})
    json["edges"].push_back({{"sourceId", u}, {"destId", v}, {"cost", 0.5}});
  const Problem p = problem_of(json, kStream);
  const auto split = evaluated(p, placed({0, 1, 0, 1}));
  // 0: 1 + 3, outputs of 0 and 2 leave, 1's comes in. 1: 2 + 4, outputs of 0 and 2 come in, 1's leaves.
  EXPECT_EQ(split.timeline.device_busy_us, (std::vector<double>{5500, 7500, 0}));
  EXPECT_TRUE(split.report.ok());
}

TEST(Placement, TheCheckerNamesWhatIsWrong) {
  Json json = diamond();
  const auto message = [&](const std::vector<int32_t>& devices) {
    return finding(problem_of(json, kContiguousStream), placed(devices));
  };
  EXPECT_EQ(message({0, 0, 0, 1}), "");
  EXPECT_NE(message({0, 0, 0, 0}).find("accelerator0 would hold 4"), std::string::npos);
  EXPECT_NE(message({0, 1, 1, 0}).find("not contiguous"), std::string::npos);
  json["nodes"][0]["colorClass"] = json["nodes"][3]["colorClass"] = 5;
  EXPECT_NE(message({0, 0, 0, 1}).find("one colour"), std::string::npos);
  json["nodes"][1]["supportedOnFpga"] = false;
  const Problem p = problem_of(json, kStream);
  const Plan plan = made(plan_of_placement(p, placed({0, 1, 1, 0})));
  EXPECT_FALSE(evaluate(p, plan).ok());
  EXPECT_FALSE(plan_of_placement(p, placed({0, 0, 0})).ok());
  EXPECT_FALSE(plan_of_placement(p, placed({0, 0, 0, 3})).ok());
}

// Both pieces are convex, but they feed each other: 0 -> 1, 2 -> 3, pieces {0,3} and {1,2}.
TEST(Placement, ConvexPiecesMayStillWaitForEachOther) {
  Json json = diamond();
  json["edges"] = Json::array();
  for (const auto& [u, v] : {std::pair{0, 1}, {2, 3}})
    json["edges"].push_back({{"sourceId", u}, {"destId", v}, {"cost", 0.5}});
  EXPECT_FALSE(plan_of_placement(problem_of(json, kLatency), placed({0, 1, 1, 0})).ok());
  EXPECT_TRUE(plan_of_placement(problem_of(json, kStream), placed({0, 1, 1, 0})).ok());
}

// Longest walks over pieces and single CPU nodes: longer than there are of them where there is a cycle.
bool has_cycle(const Problem& p, const std::vector<int32_t>& devices) {
  const auto cpu = static_cast<int32_t>(p.cluster->num_devices()) - 1;
  const auto group = [&](OpId v) {
    const int32_t d = devices[v.index()];
    return static_cast<size_t>(d == cpu ? cpu + v.value : d);
  };
  const size_t groups = static_cast<size_t>(cpu) + p.graph->num_ops();
  std::vector<size_t> longest(groups, 0);
  for (size_t round = 0; round <= groups; ++round) {
    bool changed = false;
    for (const Edge& e : p.graph->edges()) {
      const size_t a = group(e.src), b = group(e.dst);
      if (a == b || longest[b] > longest[a]) continue;
      longest[b] = longest[a] + 1;
      changed = true;
    }
    if (!changed) return false;
  }
  return true;
}

TEST(Placement, HasAPlanExactlyWhereNoPieceWaitsForItself) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Problem p = random_placement_problem({.anywhere = true}, seed, kLatency);
    for_each_dealing(6, 3, [&](const std::vector<int32_t>& devices) {
      const auto plan = plan_of_placement(p, placed(devices));
      ASSERT_EQ(plan.ok(), !has_cycle(p, devices));
      if (!plan.ok()) return;
      const auto timeline = made(evaluate(p, *plan));
      for (const Finding& f : check(p, *plan, timeline).findings)
        EXPECT_EQ(f.kind, Violation::kMemory) << f.message;
    });
  }
}

// The definition of docs/placement-workloads.md, device by device.
TEST(Placement, LoadsAreThoseOfTheDefinition) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Problem p = random_placement_problem(
        {.nodes = 8, .accelerators = 2, .training = seed % 2 == 0, .anywhere = true}, seed, kStream);
    Random random(seed);
    for (int round = 0; round < 30; ++round) {
      std::vector<int32_t> devices;
      for (size_t v = 0; v < p.graph->num_ops(); ++v)
        devices.push_back(static_cast<int32_t>(random.below(3)));
      std::vector<double> loads(3, 0);
      for (size_t v = 0; v < devices.size(); ++v) {
        const int32_t home = devices[v];
        loads[static_cast<size_t>(home)] += p.costs->us(OpId(v), DeviceId(home));
        std::vector<int32_t> others;
        for (const OpId reader : p.graph->successors(OpId(v))) {
          if (devices[reader.index()] != home) others.push_back(devices[reader.index()]);
        }
        if (!others.empty()) others.push_back(home);
        std::sort(others.begin(), others.end());
        others.erase(std::unique(others.begin(), others.end()), others.end());
        for (const int32_t d : others) loads[static_cast<size_t>(d)] += d < 2 ? p.transfers->us[v] : 0;
      }
      const auto result = evaluated(p, placed(devices));
      for (size_t d = 0; d < 3; ++d) ASSERT_NEAR(result.timeline.device_busy_us[d], loads[d], 1e-6);
      for (const Finding& f : result.report.findings) EXPECT_EQ(f.kind, Violation::kMemory) << f.message;
    }
  }
}

// Rows "repo:human expert" and "all on CPU" of the public reference, as their own programs printed them.
struct Row {
  std::string setting, graph, workload, peer;
  double value = 0;
};
std::vector<Row> reference_rows() {
  std::vector<Row> rows;
  std::ifstream file(public_data("dnn-partitioning") + "reference.csv");
  for (std::string line; std::getline(file, line);) {
    std::stringstream fields(line);
    Row row;
    std::string mode, value;
    std::getline(fields, row.setting, ',');
    std::getline(fields, row.graph, ',');
    std::getline(fields, row.workload, ',');
    std::getline(fields, mode, ',');
    std::getline(fields, row.peer, ',');
    std::getline(fields, value, ',');
    if (row.peer != "repo:human expert" && row.peer != "all on CPU") continue;
    row.value = std::stod(value);
    rows.push_back(row);
  }
  return rows;
}

// An expert's split, in the form of the workloads' authors. Ops of no device follow the others of their colour.
WorkloadPlacement split_of(const Problem& p, const Json& json) {
  WorkloadPlacement placement;
  placement.device.resize(p.graph->num_ops());
  std::map<int32_t, DeviceId> of_colour;
  const auto read = [&](const char* key, DeviceKind kind) {
    std::vector<DeviceId> devices;
    for (const DeviceId d : p.usable_devices()) {
      if (p.cluster->device(d).kind == kind) devices.push_back(d);
    }
    for (size_t d = 0; d < json[key].size(); ++d) {
      for (const int64_t id : json[key][d]["nodes"]) {
        const OpId op = p.graph->find_op(std::to_string(id));
        placement.device[op.index()] = devices.at(d);
        of_colour[p.rules->colour[op.index()]] = devices.at(d);
      }
    }
  };
  read("fpgas", DeviceKind::kNpu);
  read("cpus", DeviceKind::kCpu);
  for (size_t v = 0; v < placement.device.size(); ++v) {
    if (!placement.device[v].valid()) placement.device[v] = of_colour.at(p.rules->colour[v]);
  }
  return placement;
}

// Training without a file of its own follows the split for inference.
WorkloadPlacement expert(const Problem& problem, const std::string& folder, const std::string& workload) {
  auto path = folder + "human-experts/" + workload + "_expert.json";
  if (!file_exists(path))
    path =
        folder + "human-experts/" + workload.substr(0, workload.find("_training")) + "_inference_expert.json";
  return split_of(problem, made(read_json_file(path)));
}

TEST(Placement, ReproducesThePublicValues) {
  const std::string folder = public_data("dnn-partitioning");
  if (!file_exists(folder + "reference.csv")) GTEST_SKIP() << "no public data; set HEDDLE_SHARED";
  int experts = 0, cpus = 0;
  for (const auto& row : reference_rows()) {
    auto json =
        made(read_json_file(folder + row.setting + "-inputs/" + row.graph + "/" + row.workload + ".json"));
    const bool is_expert = row.peer == "repo:human expert";
    if (is_expert) json["maxFPGAs"] = 6;  // which the experts assume everywhere
    const Problem p = problem_of(json, row.setting == "latency" ? kLatency : kStream);
    WorkloadPlacement placement;
    const DeviceId cpu = p.cluster->find_device(row.setting == "latency" ? "cpus" : "cpu0");
    placement.device.assign(p.graph->num_ops(), cpu);
    if (is_expert) placement = expert(p, folder, row.workload);
    (is_expert ? experts : cpus) += 1;
    const Plan plan = made(plan_of_placement(p, placement));
    const double value = objective_us(p, made(evaluate(p, plan))) / kPlacementUnitUs;
    // Six printed digits.
    EXPECT_NEAR(value, row.value, 5e-6 * row.value) << row.setting << " " << row.workload;
  }
  EXPECT_EQ(experts, 9);
  EXPECT_EQ(cpus, 6);
}

}  // namespace
}  // namespace heddle::test
