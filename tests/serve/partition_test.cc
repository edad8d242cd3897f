// Links between hosts that are cut and heal, with gRPC over real connections: bytes stop in both directions, and
// nothing is closed. Every request has one outcome in time, whoever is cut off is known to be, and comes back. The
// simulation (src/serve/simulation) cuts single directions, too.
#include <gtest/gtest.h>

#include "fleet_clients.h"
#include "relayed_host.h"

namespace heddle {
namespace {

struct Cut {
  const char* name;
  bool in, out;
  Relay::Old old;
};
void PrintTo(const Cut& cut, std::ostream* out) { *out << cut.name; }

class Partition : public testing::TestWithParam<Cut> {
 protected:
  void SetUp() override {
    for (const char* name : {"back-1", "back-2"})
      hosts_.push_back(
          std::make_unique<RelayedHost>(name, port_, std::map<std::string, int64_t>{{"back", 1}}));
    front_ = std::make_unique<RelayedHost>("front", port_, std::map<std::string, int64_t>{{"front", 2}});
    ASSERT_TRUE(served_.serves());
    clients_ = std::make_unique<Clients>(served_.port(), 4);
    let_run(*clients_, 20);
  }
  void TearDown() override {
    if (clients_) expect_all_accounted_for(*clients_, served_);
  }
  int64_t given_up() const { return served_.status()["faults"]["given_up"]; }

  const int port_ = own_port();
  ServedFleet served_{front_and_back(2), {"--worker-port", std::to_string(port_), "--lease", "0.5"}};
  std::vector<std::unique_ptr<RelayedHost>> hosts_;  // of the back devices
  std::unique_ptr<RelayedHost> front_;
  std::unique_ptr<Clients> clients_;
};

TEST_P(Partition, AHostThatIsCutOffIsGivenUpAndComesBack) {
  auto& host = *hosts_[0];
  for (int i = 0; i < 2; ++i) {
    host.cut(GetParam().in, GetParam().out);
    EXPECT_TRUE(eventually([&] { return served_.worker("back-1")["state"] != "connected"; }));
    EXPECT_EQ(served_.worker("back-1")["virtual_devices"], 0);
    let_run(*clients_, 20);
    host.heal(GetParam().old);
    EXPECT_TRUE(eventually([&] { return served_.is_connected("back-1"); }));
    const auto runs = host.worker().counters().runs;
    EXPECT_TRUE(eventually([&] { return host.worker().counters().runs > runs + 5; }));
  }
}

TEST_P(Partition, BetweenTwoWorkersSendsBatchesElsewhereUntilItHeals) {
  auto& link = hosts_[0]->to_worker();
  link.cut(GetParam().in, GetParam().out, Relay::Calls::kFeatures);
  const auto before = given_up();
  EXPECT_TRUE(eventually([&] { return given_up() >= before + 2; }));
  let_run(*clients_, 20);
  link.heal(GetParam().old);
  const auto runs = hosts_[0]->worker().counters().runs;
  EXPECT_TRUE(eventually([&] { return hosts_[0]->worker().counters().runs > runs + 5; }));
}

TEST_P(Partition, OfAllThatCouldServeFailsRequestsInTimeUntilItHeals) {
  for (const auto& host : hosts_) host->cut(GetParam().in, GetParam().out);
  const int failed = clients_->failed;
  EXPECT_TRUE(eventually([&] { return clients_->failed > failed + 10; }));
  for (const auto& host : hosts_) host->heal(GetParam().old);
  let_run(*clients_, 20);
}

INSTANTIATE_TEST_SUITE_P(Ways, Partition,
                         testing::Values(Cut{"Both", true, true, Relay::Old::kGoOn},
                                         Cut{"BothForgotten", true, true, Relay::Old::kForgotten}),
                         [](const auto& cut) { return std::string(cut.param.name); });

}  // namespace
}  // namespace heddle
