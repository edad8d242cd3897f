// Entries with a lease on both kinds of bus: set, renewed, withdrawn, forgotten, refused.
#include "heddle/serve/bus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <sstream>

#include "heddle/serve/worker.h"
#include "nats_server.h"
#include "serve_process.h"

namespace heddle {
namespace {

using testing::HasSubstr;

// What a watcher has seen, as "+key=value -key".
struct Told {
  void watch(WorkerBus& bus) {
    bus.watch([this](const BusEntry& e) {
      const std::lock_guard lock(mutex);
      text += e.gone ? "-" + e.key + " " : "+" + e.key + "=" + e.value + " ";
    });
  }
  std::string now() {
    const std::lock_guard lock(mutex);
    return text;
  }
  std::mutex mutex;
  std::string text;
};

bool has(const WorkerBus& bus, const std::string& key) {
  for (const auto& e : bus.entries())
    if (e.key == key) return true;
  return false;
}

void expect_leases(WorkerBus& writer, WorkerBus& reader) {
  Told told;
  told.watch(reader);
  ASSERT_TRUE(writer.announce("a", "1").ok());
  ASSERT_TRUE(writer.announce("b", "2").ok());
  ASSERT_TRUE(eventually([&] { return told.now() == "+a=1 +b=2 "; })) << told.now();
  ASSERT_TRUE(writer.withdraw("b").ok());
  EXPECT_TRUE(eventually([&] { return told.now() == "+a=1 +b=2 -b "; })) << told.now();
  EXPECT_TRUE(writer.withdraw("nobody").ok());
  // Whoever stops renewing is forgotten, whoever goes on is not.
  EXPECT_TRUE(eventually([&] { return writer.announce("c", "3").ok() && !has(reader, "a"); }));
  EXPECT_TRUE(has(reader, "c"));
  EXPECT_THAT(told.now(), HasSubstr("-a "));
  reader.watch(nullptr);
  const auto before = told.now();
  ASSERT_TRUE(writer.announce("d", "4").ok());
  EXPECT_TRUE(eventually([&] { return has(reader, "d"); }));
  EXPECT_EQ(told.now(), before);
  Told late;
  late.watch(reader);
  EXPECT_TRUE(eventually([&] { return late.now().find("+d=4") != std::string::npos; }));
  reader.watch(nullptr);
  for (const char* key : {"", "a b", "a/b", "a.b"})
    EXPECT_EQ(writer.announce(key, "").error().code(), Code::kInvalidInput) << key;
}

TEST(InProcessBus, KeepsEntriesForTheirLease) {
  BusOptions options;
  options.lease_s = 1;
  const auto bus = in_process_bus(options);
  ASSERT_TRUE(bus.ok());
  expect_leases(**bus, **bus);
}

TEST(InProcessBus, RefusesWhatItCannotHold) {
  BusOptions options;
  options.max_entries = 2;
  options.max_value_bytes = 10;
  const auto bus = in_process_bus(options);
  ASSERT_TRUE(bus.ok());
  EXPECT_TRUE((*bus)->announce("a", "1").ok());
  EXPECT_TRUE((*bus)->announce("b", "2").ok());
  EXPECT_EQ((*bus)->announce("c", "3").error().code(), Code::kInfeasible);
  EXPECT_TRUE((*bus)->announce("a", "renewed").ok());
  EXPECT_EQ((*bus)->announce("a", "longer than ten").error().code(), Code::kInvalidInput);
  EXPECT_TRUE((*bus)->withdraw("b").ok());
  EXPECT_TRUE((*bus)->announce("c", "3").ok());
  options.lease_s = 0;
  EXPECT_EQ(in_process_bus(options).error().code(), Code::kInvalidInput);
}

TEST(InProcessBus, IsReachedByGrpc) {
  BusOptions options;
  options.lease_s = .4;
  options.max_entries = 1;
  const auto bus = in_process_bus(options);
  ASSERT_TRUE(bus.ok());
  const auto registry = WorkerRegistry::start("127.0.0.1", 0, **bus);
  ASSERT_TRUE(registry.ok());
  const auto announcer = registry_announcer("127.0.0.1:" + std::to_string((*registry)->port()));
  ASSERT_TRUE(announcer.ok());
  ASSERT_TRUE((*announcer)->announce("w", "x").ok());
  EXPECT_DOUBLE_EQ((*announcer)->lease_s(), .4);
  EXPECT_TRUE(has(**bus, "w"));
  EXPECT_EQ((*announcer)->announce("v", "x").error().code(), Code::kInfeasible);
  EXPECT_EQ((*announcer)->announce("not a key", "x").error().code(), Code::kInvalidInput);
  EXPECT_TRUE((*announcer)->withdraw("w").ok());
  EXPECT_FALSE(has(**bus, "w"));
  EXPECT_FALSE(WorkerRegistry::start("127.0.0.1", (*registry)->port(), **bus).ok());
  for (const char* address : {"", "host", "host:", ":1", "host:0", "host:70000", "http://host:1"})
    EXPECT_FALSE(registry_announcer(address).ok()) << address;
  const auto nobody = registry_announcer("127.0.0.1:1");
  ASSERT_TRUE(nobody.ok());
  EXPECT_EQ((*nobody)->announce("w", "x").error().code(), Code::kIo);
}

TEST(NatsBus, WithoutAServerSaysSo) {
  const auto bus = nats_bus("nats://127.0.0.1:1", "heddle", {});
  ASSERT_FALSE(bus.ok());
  EXPECT_EQ(bus.error().code(), has_nats() ? Code::kIo : Code::kUnsupported);
  EXPECT_THAT(bus.error().to_string(), HasSubstr(has_nats() ? "no NATS server" : "built without NATS"));
}

TEST(NatsBus, KeepsEntriesForTheirLeaseAcrossClients) {
  const NatsServer nats;
  if (!nats.available()) GTEST_SKIP() << "no NATS";
  BusOptions options;
  options.lease_s = 1;
  const auto writer = nats.bus(options), reader = nats.bus(options);
  ASSERT_TRUE(writer && reader);
  expect_leases(*writer, *reader);
}

// Its bucket is in the server's memory, so it is gone then.
TEST(NatsBus, OutlivesItsServer) {
  NatsServer nats;
  if (!nats.available()) GTEST_SKIP() << "no NATS";
  BusOptions options;
  options.lease_s = 1;
  const auto writer = nats.bus(options), reader = nats.bus(options);
  ASSERT_TRUE(writer && reader);
  const auto has = [&](const std::string& key) {
    return std::ranges::any_of(reader->entries(), [&](const BusEntry& e) { return e.key == key; });
  };
  ASSERT_TRUE(writer->announce("before", "1").ok());
  EXPECT_TRUE(eventually([&] { return has("before"); }));
  nats.kill();
  EXPECT_FALSE(writer->announce("meanwhile", "1").ok());
  nats.start();
  EXPECT_TRUE(eventually([&] { return writer->announce("after", "1").ok() && has("after"); }));
}

TEST(NatsBus, IsFull) {
  const NatsServer nats;
  if (!nats.available()) GTEST_SKIP() << "no NATS";
  BusOptions options;
  options.lease_s = 30;
  options.max_bytes = 2000;
  const auto bus = nats.bus(options);
  ASSERT_TRUE(bus);
  Status status;
  for (int i = 0; i < 100 && status.ok(); ++i)
    status = bus->announce("w" + std::to_string(i), std::string(200, 'x'));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Code::kInfeasible) << status.error().to_string();
}

// The whole program over NATS: workers that were there before the server, and one that is killed.
TEST(NatsBus, CarriesAFleet) {
  const NatsServer nats;
  if (!nats.available()) GTEST_SKIP() << "no NATS";
  ASSERT_TRUE(nats.bus({}, "probe"));
  const auto worker = [&nats](const std::string& name) {
    return std::make_unique<Process>(std::vector<std::string>{HEDDLE_PROGRAM, "worker", "--quiet", "--name",
                                                              name, "--bus", nats.url(), "--devices",
                                                              "front=1,back=1"});
  };
  const auto a = worker("a"), b = worker("b");
  ServedFleet served(front_and_back(2), {"--bus", nats.url()});
  ASSERT_TRUE(served.serves());
  const auto ask = [&served] {
    return RawClient(served.port())
        .ask("POST", "/v2/models/net/infer",
             R"({"inputs": [{"name": "payload", "shape": [1], "datatype": "UINT8", "data": [7]}]})")
        .status;
  };
  EXPECT_EQ(ask(), 200);
  EXPECT_TRUE(served.is_connected("a") && served.is_connected("b"));
  b->signal(SIGKILL);
  EXPECT_TRUE(eventually([&] { return served.worker("b")["state"] == "lost"; }));
  EXPECT_TRUE(eventually([&] { return ask() == 200; }));
  EXPECT_TRUE(served.is_connected("a"));
}

TEST(WorkerEntry, IsReadStrictly) {
  WorkerEntry entry;
  entry.name = "w";
  entry.address = "127.0.0.1:9";
  entry.incarnation = "1-2";
  entry.pid = 1;
  entry.devices = {{"L4", 2}};
  const auto back = worker_entry_from_text("w", worker_entry_text(entry));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->devices, entry.devices);
  EXPECT_EQ(back->address, entry.address);
  for (const char* text :
       {"", "[]", "{}", R"({"address": "nowhere", "devices": {}})",
        R"({"address": "h:1", "devices": {"L4": -1}})", R"({"address": "h:1", "devices": [1]})",
        R"({"address": "h:1", "devices": {}, "more": 1})"})
    EXPECT_FALSE(worker_entry_from_text("w", text).ok()) << text;
}

}  // namespace
}  // namespace heddle
