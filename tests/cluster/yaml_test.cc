#include <gtest/gtest.h>

#include "cluster_text.h"
#include "heddle/base/json.h"
#include "heddle/base/random.h"

namespace heddle {
namespace {

using test::error_of;
using test::replaced;

constexpr const char* kGood = R"(name: demo
hosts:
  - {name: left, memory: 64GiB}
  - name: right
devices:
  - name: gpu0
    kind: gpu
    class: mine
    host: left
    memory: 16GiB
    flops: 8.1TFLOPS
    memory_bandwidth: 320GB/s
    op_overhead: 5us
    speed: 0.5
    copy_engines: 1
  - {name: cores, kind: cpu, host: right, cores: "0-2,8", backend: openvino, target: "openvino:CPU:4"}
switches: [net]
buses:
  - {name: bus0, bandwidth: 12GB/s, duplex: full}
links:
  - {name: pcie, from: left, to: gpu0, bandwidth: 16GB/s, latency: 10us, duplex: half, bus: bus0}
nics:
  - {name: eth-left, host: left, network: net, bandwidth: 100Gbit/s, latency: 5us}
  - {name: eth-right, host: right, network: net, bandwidth: 100Gbit/s, latency: 5us}
)";

TEST(ClusterYaml, EveryFieldArrives) {
  const auto c = parse_cluster_yaml(kGood, "c.yaml").value();
  EXPECT_EQ(c->name(), "demo");
  EXPECT_EQ(c->hosts()[0].memory_bytes, int64_t{64} << 30);
  const Device& gpu = c->devices()[0];
  EXPECT_EQ(gpu.device_class, "mine");
  EXPECT_EQ(gpu.memory_bytes, int64_t{16} << 30);
  EXPECT_EQ(gpu.peak_flops, 8.1e12);
  EXPECT_EQ(gpu.memory_bytes_per_s, 320e9);
  EXPECT_EQ(gpu.op_overhead_us, 5);
  EXPECT_EQ(gpu.speed, 0.5);
  EXPECT_EQ(gpu.copy_engines, 1);
  const Device& cpu = c->devices()[1];
  EXPECT_EQ(cpu.cores, (std::vector<int>{0, 1, 2, 8}));
  EXPECT_EQ(cpu.device_class, "cores");
  EXPECT_EQ(cpu.backend, "openvino");
  EXPECT_EQ(cpu.backend_device, "CPU");
  EXPECT_EQ(cpu.target, "openvino:CPU:4");
  EXPECT_EQ(c->links()[0].duplex, Duplex::kHalf);
  EXPECT_EQ(c->links()[0].bus, BusId(0));
  const Route* r = c->route(DeviceId(0), DeviceId(1));
  ASSERT_NE(r, nullptr);
  EXPECT_EQ(r->hops.size(), 3U);
  EXPECT_EQ(r->bytes_per_s, 12e9);  // the bus's; the NICs have 12.5e9
  EXPECT_EQ(r->latency_us, 20);
}

TEST(ClusterYaml, TheOnlyHostNeedNotBeNamedByDevices) {
  const auto c =
      parse_cluster_yaml("name: a\nhosts: [{name: h}]\ndevices: [{name: d, kind: npu}]\n", "c.yaml");
  EXPECT_TRUE(c.ok());
}

TEST(ClusterYaml, AnchorsAndAliasesRepeatSettings) {
  const auto c = parse_cluster_yaml(
      "name: a\nhosts: [{name: h}]\ndevices: [{name: d, kind: gpu, flops: &f 5TFLOPS}, {name: e, kind: gpu, "
      "flops: *f}]\n",
      "c.yaml");
  ASSERT_TRUE(c.ok());
  EXPECT_EQ((*c)->devices()[1].peak_flops, 5e12);
}

struct Broken {
  const char *what, *by, *message;
};

TEST(ClusterYaml, EveryMistakeIsNamedWithItsPlaceAndTheExpectation) {
  const Broken cases[] = {
      {"    class: mine", "    clas: T4", "c.yaml:8: $.devices[0].clas: unknown key (did you mean 'class'?)"},
      {"switches:", "switchs:", "c.yaml:17: $.switchs: unknown key (did you mean 'switches'?)"},
      {"    class: mine", "    kind: gpu", "c.yaml:8: the key 'kind' stands twice"},
      {"kind: gpu", "kind: gpuu",
       "c.yaml:7: $.devices[0].kind: is the string 'gpuu', expected 'cpu', 'gpu', 'npu' or 'fpga'"},
      {"    kind: gpu\n", "",
       "c.yaml:6: $.devices[0]: the key 'kind' is missing, and the catalogue has no class 'mine'; `heddle "
       "devices "
       "--catalogue` lists its classes"},
      {"name: demo", "nam: demo", "c.yaml:1: $.nam: unknown key (did you mean 'name'?)"},
      {"name: demo\n", "", "c.yaml:1: $: the key 'name' is missing"},
      {"memory: 16GiB", "memory: 16Gbb",
       "c.yaml:10: $.devices[0].memory: is the string '16Gbb', expected a size such as '16GiB', '512MB' or a "
       "number of bytes"},
      {"memory: 16GiB", "memory: -1",
       "c.yaml:10: $.devices[0].memory: is the string '-1', expected a size such as '16GiB', '512MB' or a "
       "number of bytes"},
      {"memory: 16GiB", "memory: [1]",
       "c.yaml:10: $.devices[0].memory: is an array of 1, expected a size such as '16GiB', '512MB' or a "
       "number of bytes"},
      {"memory: 16GiB", "memory:",
       "c.yaml:10: $.devices[0].memory: is null, expected a size such as '16GiB', '512MB' or a number of "
       "bytes"},
      {"flops: 8.1TFLOPS", "flops: fast",
       "c.yaml:11: $.devices[0].flops: is the string 'fast', expected a rate such as '15.7TFLOPS' or FLOP "
       "per second"},
      {"op_overhead: 5us", "op_overhead: -5us",
       "c.yaml:13: $.devices[0].op_overhead: is the string '-5us', expected a time such as '5us', '1.5ms' or "
       "microseconds"},
      {"speed: 0.5", "speed: 0",
       "c.yaml:6: $.devices[0]: the speed of device 'gpu0' is 0; expected a finite number above 0"},
      {"speed: 0.5", "speed: .inf",
       "c.yaml:14: $.devices[0].speed: is the string '.inf', expected a number from 0 to 1e30"},
      {"copy_engines: 1", "copy_engines: 3",
       "c.yaml:15: $.devices[0].copy_engines: is the string '3', expected 0, 1 or 2"},
      {"host: left\n", "host: lef\n",
       "c.yaml:9: $.devices[0].host: no host is named 'lef' (did you mean 'left'?); expected 'left' and "
       "'right'"},
      {"    host: left\n", "",
       "c.yaml:6: $.devices[0]: the device 'gpu0' names no host; with 2 hosts in the file, 'host' is "
       "required"},
      {"cores: \"0-2,8\"", "cores: \"2-0\"",
       "c.yaml:16: $.devices[1].cores: is the string '2-0', expected core numbers from 0 to 65535 such as "
       "'0-3,8' or [0, 1]"},
      {"cores: \"0-2,8\"", "cores: [0, x]",
       "c.yaml:16: $.devices[1].cores[1]: is the string 'x', expected core numbers from 0 to 65535 such as "
       "'0-3,8' or [0, 1]"},
      {"cores: \"0-2,8\"", "cores: [1, 1]", "c.yaml:16: $.devices[1]: device 'cores' names core 1 twice"},
      {"backend: openvino", "backend: cuda",
       "c.yaml:16: $.devices[1].backend: is the string 'cuda', expected 'openvino', 'onnxruntime', 'torch' "
       "or 'emulated'"},
      {"kind: cpu, ", "kind: cpu, memory: 1GB, ",
       "c.yaml:16: $.devices[1]: device 'cores' is a cpu and has its own memory; a cpu lives in its host's "
       "memory: set that of the host"},
      {"    copy_engines: 1", "    cores: [1]",
       "c.yaml:6: $.devices[0]: device 'gpu0' has cores, but only a cpu may; remove them"},
      {"switches: [net]", "switches: net", "c.yaml:17: $.switches: is the string 'net', expected an array"},
      {"switches: [net]", "switches: [net, gpu0]",
       "c.yaml:17: $.switches[1]: a second host, device or switch is named 'gpu0'; each needs a name of its "
       "own"},
      {"bandwidth: 12GB/s, duplex: full", "bandwidth: 12GB/s, duplex: one-way",
       "c.yaml:19: $.buses[0].duplex: is the string 'one-way', expected 'full' or 'half'"},
      {"to: gpu0", "to: gpu1",
       "c.yaml:21: $.links[0].to: no host, device or switch is named 'gpu1' (did you mean 'gpu0'?); expected "
       "'left', 'right', 'gpu0', 'cores' and 'net'"},
      {"to: gpu0", "to: left", "c.yaml:21: $.links[0]: the link joins a node with itself; name two ends"},
      {"bandwidth: 16GB/s", "bandwidth: 0",
       "c.yaml:21: $.links[0]: the link has the bandwidth 0; expected one above 0"},
      {"bandwidth: 16GB/s, ", "", "c.yaml:21: $.links[0]: the key 'bandwidth' is missing"},
      {"duplex: half", "duplex: both",
       "c.yaml:21: $.links[0].duplex: is the string 'both', expected 'full', 'half' or 'one-way'"},
      {"bus: bus0", "bus: bus1",
       "c.yaml:21: $.links[0].bus: no bus is named 'bus1' (did you mean 'bus0'?); expected 'bus0'"},
      {"network: net", "network: nett",
       "c.yaml:23: $.nics[0].network: no host, device or switch is named 'nett' (did you mean 'net'?); "
       "expected 'left', 'right', 'gpu0', 'cores' and 'net'"},
      {"name: eth-right", "name: eth-left",
       "c.yaml:24: $.nics[1]: a second link is named 'eth-left'; each needs a name of its own"},
      {"  - name: right", "  - right", "c.yaml:4: $.hosts[1]: is the string 'right', expected an object"},
  };
  for (const Broken& broken : cases) {
    EXPECT_EQ(error_of(replaced(kGood, broken.what, broken.by)), broken.message);
  }
}

TEST(ClusterYaml, FilesThatAreNoClusterSaySo) {
  EXPECT_EQ(error_of("[]"), "c.yaml:1: $: is an array of 0, expected an object");
  EXPECT_EQ(error_of("just text"), "c.yaml:1: $: is the string 'just text', expected an object");
  EXPECT_EQ(error_of("name: a\n"), "c.yaml:1: $: the cluster has no host; add one under 'hosts'");
  EXPECT_EQ(error_of("name: a\nhosts: [{name: h}]\n"),
            "c.yaml:1: $: the cluster has no device; add at least one");
  EXPECT_EQ(error_of("name: a\n---\nname: b\n"),
            "c.yaml:2: a second document begins here; expected one cluster per file");
  EXPECT_EQ(error_of("name: [a"), "c.yaml:1: not valid YAML at column 1: end of sequence flow not found");
  EXPECT_EQ(error_of("name: a\n\tb"),
            "c.yaml:2: not valid YAML at column 1: the line is indented by a tab; use spaces");
  EXPECT_TRUE(error_of("name: a\nhosts:\n  - name: h\n\tmemory: 1GiB\n")
                  .ends_with("the line is indented by a tab; use spaces"));
  EXPECT_EQ(error_of(std::string("name: a\n\0b", 10)),
            "c.yaml:2: there is a zero byte; expected a text file");
  EXPECT_EQ(error_of(""), "c.yaml:1: the file is empty; expected a cluster");
  EXPECT_EQ(error_of("# only a comment\n"), "c.yaml:1: the file is empty; expected a cluster");
}

TEST(ClusterYaml, HostileFilesAreRefusedBeforeTheyCostAnything) {
  const auto repeat = [](const std::string& s, int n) {
    std::string out;
    for (int i = 0; i < n; ++i) out += s;
    return out;
  };
  EXPECT_EQ(error_of(repeat("[", 100'000)),
            "c.yaml:1: brackets are nested deeper than 32; a cluster file needs fewer");
  EXPECT_EQ(error_of("name: a\nhosts: " + repeat("{a: ", 100'000)),
            "c.yaml:2: brackets are nested deeper than 32; a cluster file needs fewer");
  EXPECT_NE(error_of(repeat("- ", 100'000)), "no error");
  EXPECT_NE(error_of(repeat("? ", 100'000)), "no error");
  EXPECT_NE(error_of(repeat("[\"]\",", 100'000)), "no error");
  EXPECT_EQ(error_of(repeat("a: b\n", 400'000)),
            "c.yaml:300001: the file has too many entries for a cluster file");
  std::string deep = "a: [a";
  for (size_t i = 0; i < 60; ++i) deep = std::string(500, 'k') + ":\n" + std::string(60 - i, ' ') + deep;
  deep += repeat(",a", 100'000) + "]";
  EXPECT_NE(error_of(deep).find("256 MiB"), std::string::npos) << error_of(deep);
  EXPECT_EQ(error_of(repeat("#", 9 << 20)),
            "c.yaml: the file has 9.0 MiB; a cluster file has at most 8.0 MiB");
  const std::string long_word(100'000, 'x');
  EXPECT_NE(error_of(replaced(kGood, "to: gpu0", "to: " + long_word)), "no error");
  EXPECT_LT(error_of(replaced(kGood, "clas", long_word)).size(), 500U);
  // An alias bomb: a shared list per level; and a list that holds itself.
  std::string bomb = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 30; ++i)
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) + ", *a" +
            std::to_string(i - 1) + "]\n";
  EXPECT_NE(error_of(bomb), "no error");
  // And one of a long text, which few values repeat.
  const std::string text(100'000, 'x');
  std::string texts = "name: a\nx: &x " + text + "\ny: &y [*x";
  for (int i = 0; i < 99; ++i) texts += ", *x";
  texts += "]\nz: [*y";
  for (int i = 0; i < 99; ++i) texts += ", *y";
  EXPECT_NE(error_of(texts + "]\n").find("256 MiB"), std::string::npos);
  EXPECT_NE(error_of("name: a\nhosts: &h [*h]\ndevices: *h\n"), "no error");
  EXPECT_NE(error_of("&a {*a : *a}"), "no error");
}

// yaml-cpp's LoadAll never ends on a stray comma: it finds one empty document after another.
TEST(ClusterYaml, AStrayCommaIsRefused) {
  EXPECT_NE(error_of(",&x E"), "no error");
  EXPECT_NE(error_of("{name: a}, b"), "no error");
}

TEST(ClusterYaml, MutatedFilesNeverCrash) {
  Random rng(3);
  const std::string good = kGood;
  for (int round = 0; round < 3000; ++round) {
    std::string text = good;
    for (uint64_t n = rng.below(4) + 1; n > 0; --n) {
      const size_t at = rng.below(text.size());
      const uint64_t kind = rng.below(4);
      if (kind == 0) text[at] = static_cast<char>(rng.below(256));
      if (kind == 1) text.erase(at, rng.below(20));
      if (kind == 2) text.insert(at, text.substr(rng.below(text.size()), rng.below(30)));
      if (kind == 3) text.insert(at, 1, "[]{}:,-&*!|>'\"%@`#?\n"[rng.below(20)]);
      if (text.empty()) text = good;
    }
    const auto parsed = parse_cluster_yaml(text, "c.yaml");
    if (!parsed.ok()) continue;
    const auto again = parse_cluster_yaml(cluster_to_yaml(**parsed), "again");
    ASSERT_TRUE(again.ok()) << again.error().to_string() << "\n" << text;
    ASSERT_EQ(cluster_to_yaml(**again), cluster_to_yaml(**parsed));
  }
}

TEST(ClusterYaml, WrittenAndReadBackItIsTheSame) {
  const auto c = parse_cluster_yaml(kGood, "c.yaml").value();
  const auto again = parse_cluster_yaml(cluster_to_yaml(*c), "again");
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  EXPECT_EQ(cluster_to_json(**again).dump(), cluster_to_json(*c).dump());
}

TEST(ClusterYaml, AwkwardNamesAndNumbersSurvive) {
  ClusterBuilder b("null");
  const HostId host = b.add_host({.name = "- a: \"b\" \\ # é", .memory_bytes = 12345});
  Device d{.name = "yes", .host = host};
  d.peak_flops = 1.0 / 3 * 1e13;
  d.memory_bytes_per_s = 1e-3;
  d.op_overhead_us = 0.1 + 0.2;
  d.speed = 1e-7;
  b.add_device(d);
  b.add_device({.name = "12", .host = host});
  b.add_link({.name = "[x]",
              .a = b.host_node(host),
              .b = b.device_node(DeviceId(0)),
              .bytes_per_s = 1e25,
              .latency_us = 1e-9});
  const auto c = b.build().value();
  const auto again = parse_cluster_yaml(cluster_to_yaml(*c), "again");
  ASSERT_TRUE(again.ok()) << again.error().to_string() << cluster_to_yaml(*c);
  EXPECT_EQ(cluster_to_json(**again).dump(), cluster_to_json(*c).dump());
}

TEST(ClusterYaml, UnquotedNamesStayAsTheyAreWritten) {
  const auto cluster = parse_cluster_yaml(
      "name: 1.10\nhosts: [{name: 01}, {name: 1}, {name: true}, {name: 99999999999999999999}]\n"
      "devices: [{name: 1e3, kind: cpu, host: 01, class: 007}]\n",
      "c.yaml");
  ASSERT_TRUE(cluster.ok()) << cluster.error().to_string();
  EXPECT_EQ((*cluster)->name(), "1.10");
  EXPECT_EQ((*cluster)->hosts()[3].name, "99999999999999999999");
  EXPECT_EQ((*cluster)->devices()[0].name, "1e3");
  EXPECT_EQ((*cluster)->devices()[0].device_class, "007");
}

TEST(ClusterYaml, CoresMayBeRangesInListsAndMany) {
  std::string many;
  for (int core = 0; core < 400; core += 2) many += (core == 0 ? "" : ", ") + std::to_string(core);
  const auto cluster = parse_cluster_yaml(
      "name: c\nhosts: [{name: h}]\ndevices:\n  - {name: a, kind: cpu, cores: [0-3, 8, \"9\"]}\n"
      "  - {name: b, kind: cpu, cores: [" +
          many + "]}\n",
      "c.yaml");
  ASSERT_TRUE(cluster.ok()) << cluster.error().to_string();
  EXPECT_EQ((*cluster)->devices()[0].cores, (std::vector<int>{0, 1, 2, 3, 8, 9}));
  EXPECT_EQ((*cluster)->devices()[1].cores.size(), 200u);
  const auto again = parse_cluster_yaml(cluster_to_yaml(**cluster), "again.yaml");
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  EXPECT_EQ((*again)->devices()[1].cores, (*cluster)->devices()[1].cores);
}

TEST(ClusterYaml, ManyKeysTakeTimeInProportion) {
  std::string text = "name: c\nhosts: [{name: h}]\n";
  for (int i = 0; i < 100'000; ++i) text += "k" + std::to_string(i) + ": 1\n";
  EXPECT_FALSE(parse_cluster_yaml(text, "c.yaml").ok());  // a lookup for each key would take minutes
  EXPECT_NE(error_of(std::string(1000, 'k') + ": 1\n").find("a key of 1000 bytes"), std::string::npos);
}

TEST(ClusterJson, ReadBackItIsTheSame) {
  const auto c = parse_cluster_yaml(kGood, "c.yaml").value();
  const Json json = parse_json(cluster_to_json(*c).dump()).value();
  const auto again = cluster_from_json(JsonCursor(json, "$.cluster"));
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  EXPECT_EQ(cluster_to_yaml(**again), cluster_to_yaml(*c));
}

TEST(ClusterJson, MistakesNameTheirPlace) {
  const auto c = parse_cluster_yaml(kGood, "c.yaml").value();
  const auto error_with = [&](const char* list, const char* key, Json value) {
    Json json = cluster_to_json(*c);
    json[list][0][key] = std::move(value);
    const auto read = cluster_from_json(JsonCursor(json, "$.cluster"));
    return read.ok() ? std::string("no error") : read.error().to_string();
  };
  EXPECT_NE(
      error_with("devices", "host", "nowhere").find("$.cluster.devices[0].host: no host is named 'nowhere'"),
      std::string::npos);
  EXPECT_NE(error_with("devices", "kind", "tpu").find("$.cluster.devices[0].kind: is the string 'tpu'"),
            std::string::npos);
  EXPECT_NE(error_with("devices", "memory", 5).find("memory_bytes"), std::string::npos);
  EXPECT_NE(error_with("links", "to", "nowhere").find("$.cluster.links[0].to"), std::string::npos);
  EXPECT_NE(error_with("links", "bytes_per_s", -1).find("$.cluster.links[0].bytes_per_s"), std::string::npos);
  EXPECT_NE(error_with("buses", "duplex", "one-way").find("'full' or 'half'"), std::string::npos);
}

}  // namespace
}  // namespace heddle
