#include "heddle/cluster/catalogue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "heddle/cluster/cluster_yaml.h"

namespace heddle {
namespace {

Result<std::shared_ptr<const Cluster>> box(const std::string& devices, const std::string& rest = "") {
  return parse_cluster_yaml("name: box\nhosts:\n  - {name: host}\ndevices:\n" + devices + rest, "box.yaml");
}

TEST(Catalogue, NamesAreUniqueAndRatesPlausible) {
  std::set<std::string> names;
  for (const CatalogueDevice& d : device_catalogue()) {
    EXPECT_TRUE(names.insert(d.name).second) << d.name;
    EXPECT_EQ(find_in_catalogue(d.name), &d);
    EXPECT_GT(d.f32_flops, 1e12) << d.name;
    EXPECT_GT(d.memory_bytes_per_s, 5e10) << d.name;
    if (d.kind == DeviceKind::kGpu) {
      EXPECT_GT(d.link_bytes_per_s, 1e10) << d.name;
    }
    EXPECT_GE(peak_flops(d, Precision::kFp16), d.f32_flops) << d.name;
    EXPECT_NE(std::string(d.source), "") << d.name;
  }
  EXPECT_EQ(find_in_catalogue("L5"), nullptr);
}

TEST(Catalogue, HasTheCardsAndSocketsThatFleetsAreMadeOf) {
  for (const char* name :
       {"V100",    "T4",        "P4",        "L4",        "A10",       "A40",      "A6000",
        "A100",    "H100",      "H200",      "RTX3060",   "RTX3070",   "RTX3080",  "RTX3090",
        "RTX4060", "RTX4070",   "RTX4080",   "RTX4090",   "RTX5060",   "RTX5070",  "RTX5080",
        "RTX5090", "Xeon-8480", "EPYC-7763", "EPYC-9654", "IrisXe-96", "Arc-140V", "Radeon-780M"})
    EXPECT_NE(find_in_catalogue(name), nullptr) << name;
}

// AMD: 64 cores x 2.45 GHz x two 256-bit multiply-adds; 8 channels of DDR4-3200.
TEST(Catalogue, ASocketIsACpuWithTheMemoryOfItsHost) {
  const auto cluster = box("  - {name: a, class: EPYC-7763}\n  - {name: b, class: L4}\n");
  ASSERT_TRUE(cluster.ok()) << cluster.error().to_string();
  const Device& a = (*cluster)->device(DeviceId(0));
  EXPECT_EQ(a.kind, DeviceKind::kCpu);
  EXPECT_DOUBLE_EQ(a.peak_flops, 64 * 2.45e9 * 32);
  EXPECT_DOUBLE_EQ(a.memory_bytes_per_s, 204.8e9);
  EXPECT_EQ((*cluster)->links().size(), 1U);  // the card's
  const auto again = parse_cluster_yaml(cluster_to_yaml(**cluster), "again.yaml");
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  EXPECT_EQ(cluster_to_yaml(**again), cluster_to_yaml(**cluster));
}

TEST(Catalogue, AClassFillsWhatTheFileDoesNotSay) {
  const auto cluster =
      box("  - {name: a, class: L4}\n  - {name: b, class: T4, memory: 8GiB, flops: 4TFLOPS}\n");
  ASSERT_TRUE(cluster.ok()) << cluster.error().to_string();
  const Device& a = (*cluster)->device(DeviceId(0));
  EXPECT_EQ(a.kind, DeviceKind::kGpu);
  EXPECT_EQ(a.device_class, "L4");
  EXPECT_EQ(a.peak_flops, 30.3e12);
  EXPECT_EQ(a.memory_bytes, int64_t{24} << 30);
  EXPECT_EQ(a.memory_bytes_per_s, 300e9);
  EXPECT_GT(a.op_overhead_us, 0);
  const Device& b = (*cluster)->device(DeviceId(1));
  EXPECT_EQ(b.peak_flops, 4e12);
  EXPECT_EQ(b.memory_bytes, int64_t{8} << 30);
  EXPECT_EQ(b.memory_bytes_per_s, 320e9);
}

TEST(Catalogue, CardsWithoutLinksGetOneEachToTheirHost) {
  const auto cluster = box("  - {name: a, class: L4}\n  - {name: b, class: T4}\n");
  ASSERT_TRUE(cluster.ok());
  ASSERT_EQ((*cluster)->links().size(), 2U);
  EXPECT_EQ((*cluster)->links()[0].bytes_per_s, find_in_catalogue("L4")->link_bytes_per_s);
  EXPECT_NE((*cluster)->route(DeviceId(0), DeviceId(1)), nullptr);
  const auto given =
      box("  - {name: a, class: L4}\n", "links:\n  - {name: l, from: host, to: a, bandwidth: 1GB/s}\n");
  ASSERT_TRUE(given.ok()) << given.error().to_string();
  ASSERT_EQ((*given)->links().size(), 1U);
  EXPECT_EQ((*given)->links()[0].bytes_per_s, 1e9);
}

TEST(Catalogue, AClusterThatIsWrittenReadsBackAsItself) {
  for (const std::string links : {"", "links: []\n"}) {
    const auto cluster = box(
        "  - {name: a, class: T4, op_overhead: 0us, memory: 0, flops: 0}\n  - {name: b, class: L4}\n", links);
    ASSERT_TRUE(cluster.ok()) << cluster.error().to_string();
    EXPECT_EQ((*cluster)->links().size(), links.empty() ? 2U : 0U);
    const std::string yaml = cluster_to_yaml(**cluster);
    const auto again = parse_cluster_yaml(yaml, "again.yaml");
    ASSERT_TRUE(again.ok()) << again.error().to_string();
    EXPECT_EQ(cluster_to_yaml(**again), yaml);
    EXPECT_EQ((*again)->devices()[0].op_overhead_us, 0);
    EXPECT_EQ((*again)->links().size(), (*cluster)->links().size());
  }
}

TEST(Catalogue, APrecisionHasItsOwnRate) {
  const auto cluster = box("  - {name: a, class: L4, precision: bf16}\n");
  ASSERT_TRUE(cluster.ok()) << cluster.error().to_string();
  EXPECT_EQ((*cluster)->device(DeviceId(0)).peak_flops, 121e12);
}

TEST(Catalogue, AWrongDeviceIsAnError) {
  const auto cluster = box("  - {name: a, class: L4, backend: abacus}\n");
  ASSERT_FALSE(cluster.ok());
  EXPECT_NE(cluster.error().to_string().find("abacus"), std::string::npos) << cluster.error().to_string();
}

TEST(Catalogue, AnUnknownClassNeedsItsKind) {
  const auto cluster = box("  - {name: a, class: L5}\n");
  ASSERT_FALSE(cluster.ok());
  EXPECT_NE(cluster.error().to_string().find("'kind' is missing"), std::string::npos)
      << cluster.error().to_string();
}

}  // namespace
}  // namespace heddle
