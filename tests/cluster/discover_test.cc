#include "heddle/cluster/discover.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "heddle/cluster/cluster_yaml.h"

namespace heddle {
namespace {

TEST(Discover, CoreSetsHalveDownToSingleCores) {
  const auto c = discover_local().value();
  const Device& all = c->devices()[0];
  std::set<int> singles;
  for (const Device& d : c->devices()) {
    EXPECT_EQ(d.kind, DeviceKind::kCpu);
    EXPECT_TRUE(d.device_class.starts_with("cpu" + std::to_string(d.cores.size())));
    EXPECT_TRUE(d.target.starts_with("openvino:CPU:" + std::to_string(d.cores.size())));
    EXPECT_EQ(d.backend, "openvino");
    EXPECT_GT(d.peak_flops, 1e8);
    EXPECT_GT(d.memory_bytes_per_s, 1e7);
    EXPECT_TRUE(std::includes(all.cores.begin(), all.cores.end(), d.cores.begin(), d.cores.end()));
    if (d.cores.size() == 1) singles.insert(d.cores[0]);
  }
  if (all.cores.size() <= 128) {
    EXPECT_EQ(singles.size(), all.cores.size());
  }
  EXPECT_EQ(c->overlaps(DeviceId(0)).size(), c->num_devices() - 1);
  EXPECT_GT(c->hosts()[0].memory_bytes, 0);
}

TEST(Discover, TensorsPassByReferenceWithTheCostOfAWakeUp) {
  const auto c = discover_local().value();
  if (c->num_devices() < 3) GTEST_SKIP() << "one core only";
  const Route* r = c->route(DeviceId(1), DeviceId(2));
  ASSERT_NE(r, nullptr);
  EXPECT_GT(r->latency_us, 0);
  EXPECT_EQ(r->time_us(0), r->latency_us);
  EXPECT_TRUE(c->load_route(DeviceId(1))->hops.empty());
}

TEST(Discover, RatesAreMeasuredOnceSoThatTwoCallsAgree) {
  EXPECT_EQ(cluster_to_yaml(*discover_local().value()), cluster_to_yaml(*discover_local().value()));
}

TEST(Discover, OtherOpenVinoDevicesAreAddedWithoutRates) {
  const std::vector<std::string> names = {"GPU.0", "NPU"};
  const auto c = discover_local(names).value();
  const DeviceId gpu = c->find_device("gpu.0"), npu = c->find_device("npu");
  ASSERT_TRUE(gpu.valid());
  ASSERT_TRUE(npu.valid());
  EXPECT_EQ(c->device(npu).kind, DeviceKind::kNpu);
  EXPECT_EQ(c->device(gpu).backend_device, "GPU.0");
  EXPECT_EQ(c->device(gpu).target, "openvino:GPU.0");
  EXPECT_EQ(c->device(gpu).peak_flops, 0);
  EXPECT_NE(c->route(DeviceId(0), gpu), nullptr);
  EXPECT_TRUE(parse_cluster_yaml(cluster_to_yaml(*c), "again").ok());
}

TEST(Discover, TheAffinityMaskIsHonoured) {
  // In a child, because the mask and the measurement are the process's.
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    int last = 0;
    for (int i = 0; i < CPU_SETSIZE; ++i) last = CPU_ISSET(i, &set) ? i : last;
    CPU_ZERO(&set);
    CPU_SET(last, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) _exit(2);
    _exit(machine_fingerprint().find("| 1 cores |") != std::string::npos ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "this system does not let a process narrow its mask";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Discover, TheFingerprintIsStableAndNamesTheMachine) {
  EXPECT_EQ(machine_fingerprint(), machine_fingerprint());
  EXPECT_NE(machine_fingerprint().find(" cores | "), std::string::npos);
}

}  // namespace
}  // namespace heddle
