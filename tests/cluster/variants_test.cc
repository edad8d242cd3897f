#include "heddle/cluster/variants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster_text.h"
#include "heddle/base/json.h"
#include "heddle/cluster/edit.h"

namespace heddle {
namespace {

using test::error_of;
using test::replaced;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kTwoEngines = R"(name: demo
hosts:
  - {name: server, memory: 64GiB}
devices:
  - {name: pair, kind: cpu, cores: "0-1", target: "openvino:CPU:2", engines: [openvino, onnxruntime],
     precisions: [f32, bf16]}
  - {name: one, kind: cpu, cores: "1", backend: openvino, target: "openvino:CPU:1"}
  - {name: gpu0, kind: gpu}
links:
  - {from: server, to: pair, bandwidth: 10GB/s, latency: 2us}
  - {from: server, to: one, bandwidth: 10GB/s, latency: 2us}
  - {from: server, to: gpu0, bandwidth: 16GB/s}
)";

std::shared_ptr<const Cluster> cluster_from(const std::string& text) {
  auto cluster = parse_cluster_yaml(text, "c.yaml");
  EXPECT_TRUE(cluster.ok()) << cluster.error().to_string();
  return cluster.ok() ? *cluster : nullptr;
}

std::vector<std::string> device_names(const Cluster& cluster) {
  std::vector<std::string> names;
  for (const auto& d : cluster.devices()) names.push_back(d.name);
  return names;
}

TEST(Variants, AFileListsEnginesAndPrecisions) {
  const auto c = cluster_from(kTwoEngines);
  ASSERT_NE(c, nullptr);
  EXPECT_THAT(device_names(*c),
              ElementsAre("pair", "one", "gpu0", "pair+bf16", "pair+onnxruntime", "pair+onnxruntime+bf16"));
  const Device& both = c->device(c->find_device("pair+onnxruntime+bf16"));
  EXPECT_EQ(both.backend, "onnxruntime");
  EXPECT_EQ(both.precision, Precision::kBf16);
  EXPECT_EQ(both.variant_of, "pair");
  EXPECT_EQ(both.cores, (std::vector<int>{0, 1}));
}

TEST(Variants, MeasuredTimesOfEnginesAndPrecisionsNeverMix) {
  const auto c = cluster_from(kTwoEngines);
  ASSERT_NE(c, nullptr);
  std::vector<std::string> targets;
  for (const DeviceId id : c->variants(DeviceId(0))) targets.push_back(c->device(id).target);
  EXPECT_THAT(targets, ElementsAre("openvino:CPU:2", "openvino:CPU:2:bf16", "onnxruntime:CPU:2",
                                   "onnxruntime:CPU:2:bf16"));
}

TEST(Variants, AForcedEngineHasATargetOfItsOwn) {
  const auto c = cluster_from(
      replaced(replaced(kTwoEngines, "engines: [openvino, onnxruntime]", "engines: [onnxruntime]"),
               "precisions: [f32, bf16]", "precisions: [bf16]"));
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(c->devices()[0].target, "onnxruntime:CPU:2:bf16");
  EXPECT_EQ(c->variants(DeviceId(0)).size(), 1U);
}

TEST(Variants, VariantsExcludeEachOtherAndWhatSharesTheirCores) {
  const auto c = cluster_from(kTwoEngines);
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(c->overlaps(c->find_device("pair")).size(), 4U);
  EXPECT_EQ(c->overlaps(c->find_device("one")).size(), 4U);
  EXPECT_TRUE(c->overlaps(c->find_device("gpu0")).empty());
}

TEST(Variants, ATensorPassesBetweenVariantsWithoutATransfer) {
  const auto c = cluster_from(kTwoEngines);
  ASSERT_NE(c, nullptr);
  const DeviceId pair = c->find_device("pair"), other = c->find_device("pair+onnxruntime");
  const DeviceId gpu = c->find_device("gpu0");
  ASSERT_NE(c->route(pair, other), nullptr);
  EXPECT_TRUE(c->route(pair, other)->hops.empty());
  EXPECT_EQ(c->memory_pool(pair), c->memory_pool(other));
  ASSERT_NE(c->route(other, gpu), nullptr);
  EXPECT_EQ(c->route(other, gpu)->time_us(1000), c->route(pair, gpu)->time_us(1000));
  EXPECT_EQ(c->physical(other), pair);
}

TEST(Variants, WritingAndReadingGivesTheSameCluster) {
  const auto c = cluster_from(kTwoEngines);
  ASSERT_NE(c, nullptr);
  const Json json = cluster_to_json(*c);
  const auto from_yaml = cluster_from(cluster_to_yaml(*c));
  ASSERT_NE(from_yaml, nullptr);
  EXPECT_EQ(cluster_to_json(*from_yaml), json);
  const auto from_json = cluster_from_json(JsonCursor(json));
  ASSERT_TRUE(from_json.ok()) << from_json.error().to_string();
  EXPECT_EQ(cluster_to_json(**from_json), json);
}

TEST(Variants, AVariantMayHaveRatesOfItsOwn) {
  const auto c = cluster_from(replaced(
      kTwoEngines, "  - {name: gpu0",
      "  - {name: one-fast, variant_of: one, precision: bf16, flops: 9TFLOPS, speed: 2}\n  - {name: gpu0"));
  ASSERT_NE(c, nullptr);
  const Device& fast = c->device(c->find_device("one-fast"));
  EXPECT_EQ(fast.peak_flops, 9e12);
  EXPECT_EQ(fast.backend, "openvino");
  EXPECT_TRUE(fast.target.empty());
  const auto again = cluster_from(cluster_to_yaml(*c));
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(cluster_to_json(*again), cluster_to_json(*c));
}

TEST(Variants, ADeviceHasPrecedenceOverWhatTheFileSaysForAll) {
  const auto c = cluster_from("name: demo\nengines: [onnxruntime, openvino]\n" +
                              std::string(kTwoEngines).substr(std::string(kTwoEngines).find('\n') + 1));
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(c->device(c->find_device("pair")).backend, "openvino");
  EXPECT_EQ(c->variants(c->find_device("one")).size(), 1U);
}

TEST(Variants, MistakesAreNamed) {
  EXPECT_THAT(error_of(replaced(kTwoEngines, "precisions: [f32, bf16]", "precisions: [f32, f8]")),
              HasSubstr("expected 'f32', 'tf32', 'bf16' or 'fp16'"));
  EXPECT_THAT(error_of(replaced(kTwoEngines, "kind: gpu}", "kind: gpu, precisions: [f32, fp16]}")),
              HasSubstr("only a cpu that states its cores may have variants"));
  EXPECT_THAT(
      error_of(replaced(kTwoEngines, "backend: openvino,", "backend: openvino, engines: [openvino],")),
      HasSubstr("both 'backend' and 'engines'"));
  EXPECT_THAT(error_of(replaced(kTwoEngines, "precisions: [f32, bf16]", "precisions: [f32, f32]")),
              HasSubstr("for the second time"));
  EXPECT_THAT(error_of(replaced(kTwoEngines, "  - {name: gpu0",
                                "  - {name: twin, variant_of: one}\n  - {name: gpu0")),
              HasSubstr("has engine and precision of 'one'"));
}

TEST(Variants, AnEditChangesTheHardwareAndSoAllOfItsVariants) {
  const auto c = cluster_from(kTwoEngines);
  ASSERT_NE(c, nullptr);
  const auto without = edit_cluster(*c, {.remove = "pair"});
  ASSERT_TRUE(without.ok()) << without.error().to_string();
  EXPECT_THAT(device_names(**without), ElementsAre("one", "gpu0"));
  const auto faster = edit_cluster(*c, {.scale = "pair+bf16", .factor = 2});
  ASSERT_TRUE(faster.ok()) << faster.error().to_string();
  for (const DeviceId id : (*faster)->variants(DeviceId(0))) EXPECT_EQ((*faster)->device(id).speed, 2);
  EXPECT_EQ((*faster)->device((*faster)->find_device("one")).speed, 1);
  const auto more = edit_cluster(*c, {.add = "pair"});
  ASSERT_TRUE(more.ok()) << more.error().to_string();
  const DeviceId twin = (*more)->find_device("pair-more");
  EXPECT_EQ((*more)->variants(twin).size(), 4U);
  EXPECT_EQ((*more)->overlaps(twin).size(), 3U);
}

TEST(Variants, ChosenVariantsStandBesideTheDevicesWithoutMovingThem) {
  const auto c = cluster_from(kTwoEngines);
  ASSERT_NE(c, nullptr);
  std::vector<std::vector<Variant>> wanted(c->num_devices());
  wanted[1] = {{"onnxruntime"}, {"onnxruntime", Precision::kFp16}};
  const auto more = with_variants(*c, wanted);
  ASSERT_TRUE(more.ok()) << more.error().to_string();
  EXPECT_EQ((*more)->devices()[1].target, "onnxruntime:CPU:1");
  EXPECT_EQ((*more)->devices()[2].name, "gpu0");
  EXPECT_EQ((*more)->devices()[1].name, "one+onnxruntime");
  EXPECT_EQ((*more)->devices().back().name, "one+onnxruntime+fp16");
  EXPECT_EQ((*more)->devices().back().target, "onnxruntime:CPU:1:fp16");
}

TEST(Variants, ANameTellsHardwareEngineAndPrecision) {
  EXPECT_EQ(hardware_name("cpu0+2+onnxruntime+bf16"), "cpu0+2");
  const auto c = cluster_from(kTwoEngines);
  ASSERT_NE(c, nullptr);
  const auto device = device_or_variant(*c, "one+onnxruntime+bf16");
  ASSERT_TRUE(device);
  EXPECT_EQ(device->backend, "onnxruntime");
  EXPECT_EQ(device->precision, Precision::kBf16);
  EXPECT_EQ(device->target, "onnxruntime:CPU:1:bf16");
  EXPECT_FALSE(device_or_variant(*c, "two+bf16"));
}

}  // namespace
}  // namespace heddle
