#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>

#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/cluster/cluster_yaml.h"

namespace heddle {
namespace {

std::shared_ptr<const Cluster> preset(const std::string& name) {
  auto c = load_cluster("preset:" + name);
  EXPECT_TRUE(c.ok()) << c.error().to_string();
  return std::move(c).value();
}

const Route& route(const Cluster& c, const std::string& from, const std::string& to) {
  return *c.route(c.find_device(from), c.find_device(to));
}

TEST(Presets, AllBuildJoinAllDevicesAndReadBackFromYamlAndJson) {
  const auto presets = cluster_presets();
  EXPECT_GE(presets.size(), 21U);
  std::set<std::string> names;
  for (const Preset& p : presets) {
    EXPECT_TRUE(names.insert(p.name).second) << p.name;
    EXPECT_FALSE(p.description.empty());
    EXPECT_FALSE(p.source.empty());
    const auto c = preset(p.name);
    const auto again = parse_cluster_yaml(cluster_to_yaml(*c), p.name);
    ASSERT_TRUE(again.ok()) << again.error().to_string();
    EXPECT_EQ(cluster_to_yaml(**again), cluster_to_yaml(*c));
    const Json json = cluster_to_json(*c);
    const auto from_json = cluster_from_json(JsonCursor(json));
    ASSERT_TRUE(from_json.ok()) << from_json.error().to_string();
    EXPECT_EQ(cluster_to_yaml(**from_json), cluster_to_yaml(*c));
    for (size_t i = 0; i < c->num_devices(); ++i) {
      EXPECT_NE(c->load_route(DeviceId(i)), nullptr);
      for (size_t j = 0; j < c->num_devices(); ++j) EXPECT_NE(c->route(DeviceId(i), DeviceId(j)), nullptr);
    }
  }
}

TEST(Presets, V100HasSortingHatsNumbers) {
  const auto c = preset("v100");
  ASSERT_EQ(c->num_devices(), 4U);
  EXPECT_EQ(c->hosts()[0].memory_bytes, int64_t{256} << 30);
  for (const Device& d : c->devices()) {
    EXPECT_EQ(d.device_class, "V100");
    EXPECT_EQ(d.memory_bytes, int64_t{32} << 30);
    EXPECT_EQ(d.peak_flops, 15.7e12);
    EXPECT_EQ(d.memory_bytes_per_s, 900e9);
    EXPECT_EQ(d.speed, 1);
  }
  // "2-ways x2 (GPU1-GPU4, GPU2-GPU3), 1-way x4 (others)"; a way is an NVLink of 25 GB/s each direction.
  const std::set<std::pair<int, int>> two_ways = {{1, 4}, {2, 3}};
  for (int i = 1; i <= 4; ++i) {
    for (int j = i + 1; j <= 4; ++j) {
      const double expected = two_ways.contains({i, j}) ? 50e9 : 25e9;
      const auto x = "gpu" + std::to_string(i), y = "gpu" + std::to_string(j);
      EXPECT_EQ(route(*c, x, y).bytes_per_s, expected) << x << y;
      EXPECT_EQ(route(*c, y, x).bytes_per_s, expected) << x << y;
      EXPECT_EQ(route(*c, x, y).hops.size(), 1U);
    }
  }
  // Two PCIe gen 3 buses: GPU1 and GPU2 share one, GPU3 and GPU4 the other.
  const auto bus = [&](const char* gpu) {
    return c->link(c->load_route(c->find_device(gpu))->hops[0].link).bus;
  };
  ASSERT_EQ(c->buses().size(), 2U);
  EXPECT_EQ(bus("gpu1"), bus("gpu2"));
  EXPECT_EQ(bus("gpu3"), bus("gpu4"));
  EXPECT_NE(bus("gpu1"), bus("gpu3"));
  EXPECT_NEAR(c->load_route(DeviceId(0))->bytes_per_s, 15.75e9, 0.01e9);
}

TEST(Presets, TheHeterogeneousV100SlowsTheSecondAndThirdGpu) {
  const auto c = preset("v100-hetero");
  const double speeds[] = {1, 135.0 / 1500, 135.0 / 1500, 1};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(c->devices()[i].speed, speeds[i]);
    EXPECT_EQ(c->devices()[i].device_class, speeds[i] == 1 ? "V100-1500MHz" : "V100-135MHz");
    EXPECT_NEAR(c->devices()[i].peak_flops, 15.36e12, 1e6);
  }
}

TEST(Presets, A6000HasOneBridgeAndTheRestOverPcie) {
  const auto c = preset("a6000");
  EXPECT_EQ(c->num_devices(), 3U);
  EXPECT_EQ(c->hosts()[0].memory_bytes, int64_t{128} << 30);
  EXPECT_EQ(route(*c, "gpu2", "gpu3").bytes_per_s, 56.25e9);
  EXPECT_EQ(route(*c, "gpu1", "gpu3").hops.size(), 2U);
  EXPECT_NEAR(route(*c, "gpu1", "gpu3").bytes_per_s, 31.5e9, 0.02e9);
}

TEST(Presets, P4dHasEightGpusOnNvSwitchAndFourBuses) {
  const auto c = preset("p4d");
  EXPECT_EQ(c->num_devices(), 8U);
  EXPECT_EQ(c->buses().size(), 4U);
  EXPECT_EQ(route(*c, "gpu1", "gpu8").bytes_per_s, 300e9);
  std::map<int, int> gpus_on_bus;
  for (size_t i = 0; i < 8; ++i) ++gpus_on_bus[c->link(c->load_route(DeviceId(i))->hops[0].link).bus.value];
  for (int b = 0; b < 4; ++b) EXPECT_EQ(gpus_on_bus[b], 2);
}

TEST(Presets, MoiraisMeasuredBandwidthsHoldInEachDirection) {
  const auto inter = preset("moirai-inter"), intra = preset("moirai-intra");
  const auto gbps = [](const Cluster& c, const char* from, const char* to) {
    return route(c, from, to).bytes_per_s * 8 / 1e9;
  };
  EXPECT_DOUBLE_EQ(gbps(*inter, "gpu-a", "gpu-b"), 44.26);
  EXPECT_DOUBLE_EQ(gbps(*inter, "gpu-b", "gpu-a"), 42.39);
  EXPECT_DOUBLE_EQ(gbps(*inter, "gpu-a", "gpu-c"), 32.92);  // not by way of B, which would be faster
  EXPECT_DOUBLE_EQ(gbps(*inter, "gpu-d", "gpu-c"), 33.28);
  EXPECT_DOUBLE_EQ(gbps(*intra, "gpu-a", "gpu-b"), 1170.04);
  EXPECT_DOUBLE_EQ(gbps(*intra, "gpu-d", "gpu-a"), 622.67);
  EXPECT_EQ(intra->devices()[2].memory_bytes, int64_t{16} << 30);
}

TEST(Presets, HiosPlatformsAndSimulatedMachines) {
  const auto a40 = preset("hios-a40");
  EXPECT_EQ(route(*a40, "gpu1", "gpu2").bytes_per_s * 2, 112.5e9);  // "bidirectional bandwidth of 112.5 GB/s"
  EXPECT_EQ(a40->devices()[0].memory_bytes_per_s, 696e9);
  EXPECT_EQ(a40->devices()[0].memory_bytes, int64_t{48} << 30);
  EXPECT_EQ(route(*preset("hios-v100s"), "gpu1", "gpu2").hops.size(), 2U);
  EXPECT_EQ(preset("hios-sim")->num_devices(), 4U);
  for (int m = 2; m <= 12; ++m) {
    const auto c = preset("hios-sim-" + std::to_string(m));
    EXPECT_EQ(c->num_devices(), static_cast<size_t>(m));
    EXPECT_EQ(route(*c, "gpu1", "gpu2").time_us(1'000'000), 1000);  // 1 GB/s, no latency
  }
}

TEST(Presets, DiviMlNodesAreWhatTheirSymmetrySays) {
  EXPECT_EQ(preset("diviml")->num_devices(), 3U);
  EXPECT_NEAR(route(*preset("diviml"), "t4", "a100").bytes_per_s, 31.5e9, 0.02e9);
  const auto c = preset("diviml-gpt3");
  EXPECT_EQ(c->hosts().size(), 6U);
  EXPECT_EQ(c->num_devices(), 30U);
}

TEST(Presets, PPipeClustersEqualThePublishedTable) {
  const char* shared = std::getenv("HEDDLE_SHARED");
  const std::string path = (shared != nullptr ? std::string(shared) : HEDDLE_SOURCE_DIR "/../shared") +
                           "/data/ppipe/clusters.json";
  if (!file_exists(path)) GTEST_SKIP() << "no " << path << "; set HEDDLE_SHARED";
  const Json json = read_json_file(path).value();
  int seen = 0;
  for (const Json& entry : json["clusters"]) {
    std::string name = entry["name"];
    for (char& ch : name) ch = static_cast<char>(std::tolower(ch));
    const auto c = preset(name);
    std::map<std::string, int> count, most_per_host;
    std::map<std::pair<std::string, int>, int> per_host;
    for (const Device& d : c->devices()) {
      ++count[d.device_class];
      int& n = ++per_host[{d.device_class, d.host.value}];
      most_per_host[d.device_class] = std::max(most_per_host[d.device_class], n);
    }
    for (const Json& gpu : entry["gpus"]) {
      EXPECT_EQ(count[gpu["type"]], gpu["count"].get<int>()) << name;
      EXPECT_EQ(most_per_host[gpu["type"]], gpu["gpus_per_server"].get<int>()) << name;
    }
    const Route* across = c->route(DeviceId(0), DeviceId(c->num_devices() - 1));
    EXPECT_EQ(across->bytes_per_s, entry["bandwidth_gbps"].get<double>() * 1e9 / 8) << name;
    EXPECT_EQ(across->latency_us, 0);
    ++seen;
  }
  EXPECT_EQ(seen, 8);
}

TEST(Presets, UnknownNamesGetTheNearestOne) {
  const auto message = [](const char* name) { return load_cluster(name).error().to_string(); };
  EXPECT_EQ(message("preset:v100-heterro"),
            "no preset is named 'v100-heterro' (did you mean 'v100-hetero'?); 'heddle devices --presets' "
            "lists them");
  EXPECT_EQ(message("preset:hios-sim-65"),
            "no preset is named 'hios-sim-65'; hios-sim-N takes N from 1 to 64");
  EXPECT_EQ(message("preset:hios-sim-4x"),
            "no preset is named 'hios-sim-4x'; hios-sim-N takes N from 1 to 64");
  EXPECT_EQ(message("v100"), "no file is named 'v100'; the preset is 'preset:v100'");
  EXPECT_EQ(load_cluster("no-such-file.yaml").error().code(), Code::kNotFound);
}

}  // namespace
}  // namespace heddle
