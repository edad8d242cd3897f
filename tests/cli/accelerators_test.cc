// Accelerators that are made up on the host, measured and planned with by the program as a user runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "heddle/base/json.h"
#include "run_program.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

// Links that no machine has: what a plan says shows whether they were measured.
constexpr const char* kTwo = R"(name: two
hosts: [{name: h}]
devices:
  - {name: c, kind: cpu, cores: "0", backend: torch, flops: 50GFLOPS, memory_bandwidth: 5GB/s}
  - {name: g0, kind: gpu, memory: 64MiB, backend: torch, backend_device: cpu, target: "torch:host", DEVICE}
  - {name: g1, kind: gpu, memory: 64MiB, backend: torch, backend_device: cpu, target: "torch:host", DEVICE}
links:
  - {from: h, to: g0, bandwidth: 1MB/s, latency: 10s}
  - {from: h, to: g1, bandwidth: 1MB/s, latency: 10s}
)";

class AcceleratorsCli : public ::testing::Test {
 protected:
  void SetUp() override {
    if (heddle({"devices", "--backends"}).out.find("torch") == std::string::npos)
      GTEST_SKIP() << "the backend torch is not built in";
    std::string text = kTwo;
    const std::string marker = "DEVICE";
    for (size_t at = text.find(marker); at != std::string::npos; at = text.find(marker))
      text.replace(at, marker.size(), "flops: 50GFLOPS, memory_bandwidth: 5GB/s");
    folder_.write("two.yaml", text);
  }
  Ran heddle(std::vector<std::string> arguments) { return run_heddle(arguments, folder_.path()); }
  Json json_of(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--json", "--quiet"});
    const Ran ran = heddle(std::move(arguments));
    EXPECT_EQ(ran.status, 0) << ran.err;
    auto json = parse_json(ran.out);
    EXPECT_TRUE(json.ok()) << ran.out;
    return json.ok() ? *json : Json();
  }
  double predicted_us(const std::string& cluster) {
    return json_of({"plan", "zoo:resnet-18", "--cluster", cluster, "--devices", "g0,g1", "--planner",
                    "round-robin"})["value_us"]
        .get<double>();
  }
  TemporaryFolder folder_;
};

TEST_F(AcceleratorsCli, MeasuredCopiesAreInTheClusterFileAndInThePlansMadeWithIt) {
  const Json json = json_of({"devices", "--copies", "--cluster", "two.yaml", "-o", "measured.yaml"});
  ASSERT_EQ(json["copies"].size(), 6u);  // each with the host, and each with the other, both ways
  for (const Json& way : json["copies"]) {
    EXPECT_EQ(way["times"].size(), 4u);
    EXPECT_GT(way["bytes_per_s"].get<double>(), 0);
    EXPECT_TRUE(way["direct"].get<bool>());
  }
  EXPECT_EQ(json["copies"][0]["from"], "host");
  EXPECT_EQ(json["copies"][0]["declared_bytes_per_s"], 1e6);
  EXPECT_EQ(json["at_once"].size(), 3u);
  EXPECT_TRUE(json["left_out"].empty());
  ASSERT_EQ(json["in_place"].size(), 2u);
  for (const Json& reads : json["in_place"]) {
    EXPECT_EQ(reads["times"].size(), 4u);
    EXPECT_GT(reads["bytes_per_s"].get<double>(), 0);
    EXPECT_GT(reads["beside_copies_bytes_per_s"].get<double>(), 0);
    EXPECT_EQ(reads["declared_bytes_per_s"], 1e6);
  }
  // The link between them is new, and its times are those of copies, not of ten seconds.
  ASSERT_EQ(json["links"].size(), 3u);
  EXPECT_EQ(json["links"][2]["from"], "g0");
  EXPECT_EQ(json["links"][2]["to"], "g1");
  EXPECT_LT(predicted_us("measured.yaml"), predicted_us("two.yaml"));
}

TEST_F(AcceleratorsCli, AnAcceleratorHasOneTypeInAPlanAndItsParametersHaveIt) {
  const auto plan = [&](const std::string& precision) {
    return std::vector<std::string>{"plan",   "zoo:resnet-18", "--cluster", "two.yaml",     "--devices",
                                    "g0",     "--planner",     "single",    "--no-profile", "--precision",
                                    precision};
  };
  const Ran several = heddle(plan("f32,bf16"));
  EXPECT_EQ(several.status, 2);
  EXPECT_THAT(several.err,
              HasSubstr("device 'g0' has one type in a plan, since it is no set of cores; choose one of "
                        "'f32' and 'bf16' for it"));
  const auto memory = [&](const std::string& precision) {
    auto command = plan(precision);
    command.insert(command.end(), {"--objective", "cold-latency", "-o", "p.json"});
    json_of(command);
    double bytes = 0;
    const Json plan_file = *parse_json(folder_.read("p.json"));
    for (const Json& param : plan_file["problem"]["graph"]["params"]) bytes += param["bytes"].get<double>();
    return bytes;
  };
  // Statistics of normalisations stay in float32.
  const double wide = memory("f32"), narrow = memory("bf16");
  EXPECT_GT(narrow, wide / 2);
  EXPECT_LT(narrow, 0.51 * wide);
}

TEST_F(AcceleratorsCli, TheTablesAreForPeopleAndTheFileStaysAClusterFile) {
  const Ran shown = heddle({"devices", "--copies", "--cluster", "two.yaml", "--quiet"});
  ASSERT_EQ(shown.status, 0) << shown.err;
  folder_.write("shown.yaml", shown.out);
  EXPECT_EQ(heddle({"devices", "--cluster", "shown.yaml"}).status, 0);
  const Ran written = heddle({"devices", "--copies", "--cluster", "two.yaml", "--quiet", "-o", "m.yaml"});
  for (const char* part : {"One copy, by its size:", "g0, both directions", "g0, g1", "g0 in place",
                           "g0, in place and copies", "1.00 MB/s", "written to m.yaml"})
    EXPECT_THAT(written.out, HasSubstr(part));
  std::istringstream lines(written.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
}

TEST_F(AcceleratorsCli, MeasuredTimesWithParametersInPlaceAreThoseThatPlansCount) {
  const std::string model = wheel_file("onnx/backend/test/data/light/light_squeezenet.onnx");
  if (model.empty()) GTEST_SKIP() << "no light models here";
  const std::vector<std::string> common = {model,     "--cluster", "two.yaml", "--devices", "g0,g1",
                                           "--units", "4",         "--store",  "store.db",  "--host-access"};
  const auto with = [&](const char* verb, std::vector<std::string> more) {
    more.insert(more.begin(), common.begin(), common.end());
    more.insert(more.begin(), verb);
    return more;
  };
  const Json profile = json_of(with("profile", {"-o", "measured.yaml"}));
  EXPECT_EQ(profile["copies"].size(), 6u);
  int in_place = 0;
  for (const Json& unit : profile["units"]) {
    if (!unit["g0"].contains("host_access_us")) continue;
    ++in_place;
    EXPECT_EQ(unit["g0"]["host_access_origin"], "measured");
    EXPECT_GE(unit["g0"]["host_access_us"].get<double>(), unit["g0"]["us"].get<double>());
    // One target, one measurement.
    EXPECT_EQ(unit["g0"]["host_access_us"], unit["g1"]["host_access_us"]);
  }
  EXPECT_GT(in_place, 0);
  const Ran plan = heddle(with("plan", {"--objective", "cold-latency", "--no-profile", "--planner",
                                        "cold-single", "-o", "p.json", "--quiet"}));
  ASSERT_EQ(plan.status, 0) << plan.err;
  const Json file = *parse_json(folder_.read("p.json"));
  const Json& table = file["problem"]["costs"]["host_access_us"];
  for (size_t u = 0; u < profile["units"].size(); ++u) {
    const Json& unit = profile["units"][u]["g0"];
    if (unit.contains("host_access_us")) {
      EXPECT_EQ(table[u][1], unit["host_access_us"]) << u;
    }
  }
}

// Two halves of an accelerator of the host, each with half of the cores, beside the whole.
TEST_F(AcceleratorsCli, SharesAreMeasuredWithAllOfThemBusy) {
  const std::string model = wheel_file("onnx/backend/test/data/light/light_squeezenet.onnx");
  if (model.empty()) GTEST_SKIP() << "no light models here";
  folder_.write("one.yaml", R"(name: one
hosts: [{name: h}]
devices: [{name: g0, kind: gpu, memory: 1GiB, backend: torch, backend_device: cpu, target: "torch:host",
           flops: 50GFLOPS, memory_bandwidth: 5GB/s}]
links: [{from: h, to: g0, bandwidth: 1GB/s}]
)");
  const Ran ran = heddle({"fleet", "profile", model, "--cluster", "one.yaml", "--blocks", "2", "--batches",
                          "2", "--share-levels", "2", "--store", "store.db", "-o", "fleet.json", "--quiet"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const Json fleet = *parse_json(folder_.read("fleet.json"));
  ASSERT_EQ(fleet["classes"].size(), 1u);
  EXPECT_EQ(fleet["classes"][0]["share_levels"], 2);
}

// Pairs of units at once on one accelerator, beside each alone: what plans with stages count there.
TEST_F(AcceleratorsCli, StagesOfAnAcceleratorAreMeasured) {
  ASSERT_EQ(heddle({"generate", "resnet-18", "--param", "image=32", "--weights", "random", "-o", "m.onnx",
                    "--quiet"})
                .status,
            0);
  const Json stages = json_of({"plan", "m.onnx", "--cluster", "two.yaml", "--devices", "g0", "--units", "4",
                               "--stages", "2", "--planner", "hios-lp", "--store", "store.db"})["stages"];
  ASSERT_EQ(stages["fits"].size(), 1u);
  const Json& fit = stages["fits"][0];
  EXPECT_EQ(fit["target"], "torch:host");
  ASSERT_EQ(fit["pairs"].size(), fit["samples"].get<size_t>());
  ASSERT_GT(fit["pairs"].size(), 0u);
  for (const Json& pair : fit["pairs"]) {
    EXPECT_EQ(pair["units"].size(), 2u);
    for (const Json& alone : pair["alone_us"])
      EXPECT_GE(pair["at_once_us"].get<double>(), alone.get<double>());
  }
}

// Two unequal devices that one is divided into compute what the whole does.
TEST_F(AcceleratorsCli, UnequalPartsOfOneDeviceRunAPlan) {
  const std::string model = wheel_file("onnx/backend/test/data/light/light_shufflenet.onnx");
  if (model.empty()) GTEST_SKIP() << "no light models here";
  std::string text = kTwo;
  for (const auto& [from, to] : {std::pair{"backend_device: cpu", "backend_device: cpu/0-1/4"},
                                 std::pair{"backend_device: cpu, ", "backend_device: cpu/1-4/4, "}})
    text.replace(text.find(from), std::string(from).size(), to);
  for (size_t at = text.find("DEVICE"); at != std::string::npos; at = text.find("DEVICE"))
    text.replace(at, 6, "flops: 50GFLOPS, memory_bandwidth: 5GB/s");
  folder_.write("parts.yaml", text);
  const Json run = json_of({"run", model, "--cluster", "parts.yaml", "--devices", "g0,g1", "--planner",
                            "round-robin", "--units", "6", "--no-profile", "--repeat", "2"});
  EXPECT_TRUE(run["outputs_equal"].get<bool>());
}

}  // namespace
}  // namespace heddle
