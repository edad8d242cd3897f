// Links between hosts that are cut and heal: bytes stop in one direction or both, and nothing is closed.
// Every request has one outcome in time, whoever is cut off is known to be, and comes back.
#include <gtest/gtest.h>

#include "fleet_clients.h"
#include "heddle/serve/bus.h"
#include "heddle/serve/worker.h"
#include "relay.h"

namespace heddle {
namespace {

// Announces a worker by the relay that leads to it.
class RelayedAnnouncer final : public Announcer {
 public:
  RelayedAnnouncer(std::unique_ptr<Announcer> announcer, Relay& to_worker)
      : announcer_(std::move(announcer)), to_worker_(to_worker) {}
  Status announce(const std::string& key, const std::string& value) override {
    auto entry = worker_entry_from_text(key, value);
    EXPECT_TRUE(entry.ok());
    to_worker_.lead_to(std::stoi(entry->address.substr(entry->address.rfind(':') + 1)));
    entry->address = to_worker_.address();
    return announcer_->announce(key, worker_entry_text(*entry));
  }
  Status withdraw(const std::string& key) override { return announcer_->withdraw(key); }
  double lease_s() const override { return announcer_->lease_s(); }

 private:
  const std::unique_ptr<Announcer> announcer_;
  Relay& to_worker_;
};

// A worker on a host of its own: all that reaches it and its server goes through relays.
class Host {
 public:
  Host(const std::string& name, int server_port, const std::map<std::string, int64_t>& devices) {
    to_server_.lead_to(server_port);
    auto announcer = registry_announcer(to_server_.address());
    EXPECT_TRUE(announcer.ok());
    announcer_ = std::make_unique<RelayedAnnouncer>(std::move(*announcer), to_worker_);
    WorkerOptions options;
    options.name = name;
    options.devices = devices;
    auto made = Worker::start(options, *announcer_);
    EXPECT_TRUE(made.ok()) << made.error().to_string();
    worker_ = std::move(*made);
  }
  // `in`: what it is sent; `out`: what it sends.
  void cut(bool in, bool out) {
    to_worker_.cut(in, out);
    to_server_.cut(out, in);
  }
  void heal(Relay::Old old) {
    to_worker_.heal(old);
    to_server_.heal(old);
  }
  Relay& to_worker() { return to_worker_; }
  const Worker& worker() const { return *worker_; }

 private:
  Relay to_worker_, to_server_;
  std::unique_ptr<RelayedAnnouncer> announcer_;
  std::unique_ptr<Worker> worker_;
};

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
      hosts_.push_back(std::make_unique<Host>(name, port_, std::map<std::string, int64_t>{{"back", 1}}));
    front_ = std::make_unique<Host>("front", port_, std::map<std::string, int64_t>{{"front", 2}});
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
  std::vector<std::unique_ptr<Host>> hosts_;  // of the back devices
  std::unique_ptr<Host> front_;
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

INSTANTIATE_TEST_SUITE_P(Directions, Partition,
                         testing::Values(Cut{"Both", true, true, Relay::Old::kGoOn},
                                         Cut{"ToTheHost", true, false, Relay::Old::kGoOn},
                                         Cut{"FromTheHost", false, true, Relay::Old::kGoOn},
                                         Cut{"BothForgotten", true, true, Relay::Old::kForgotten}),
                         [](const auto& cut) { return std::string(cut.param.name); });

}  // namespace
}  // namespace heddle
