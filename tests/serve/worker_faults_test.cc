// Workers that die, hang, fall behind and return while clients send requests, all of them real processes:
// every request that was accepted gets one answer, right or an explicit failure, and none stays open.
#include <gmock/gmock.h>

#include "fleet_clients.h"

namespace heddle {
namespace {

using testing::HasSubstr;

TEST(WorkerFaults, KilledAndStoppedWorkersLoseNoRequest) {
  ServedFleet served(front_and_back(4), {"--workers", "4", "--lease", "0.5"});
  ASSERT_TRUE(served.serves());
  Clients clients(served.port(), 6);
  let_run(clients, 20);
  // Dies.
  const pid_t killed = served.worker("worker-1")["pid"];
  ::kill(killed, SIGKILL);
  EXPECT_TRUE(eventually([&] { return served.worker("worker-1")["state"] == "lost"; }));
  let_run(clients, 20);
  // Hangs, is given up, and returns.
  const pid_t stopped = served.worker("worker-2")["pid"];
  ::kill(stopped, SIGSTOP);
  EXPECT_TRUE(eventually([&] { return served.worker("worker-2")["state"] != "connected"; }));
  EXPECT_THAT(served.worker("worker-2")["reason"].get<std::string>(), HasSubstr("no message came"));
  let_run(clients, 20);
  ::kill(stopped, SIGCONT);
  EXPECT_TRUE(eventually([&] { return served.is_connected("worker-2"); }));
  let_run(clients, 20);
  // The plan changes while a worker is gone: what is there is enough.
  const auto drained =
      RawClient(served.port()).ask("POST", "/v2/fleet/drain", R"({"change": {"front": 1, "back": 1}})");
  EXPECT_EQ(drained.status, 200) << drained.body;
  let_run(clients, 20);
  expect_all_accounted_for(clients, served);
  EXPECT_GE(served.worker("worker-2")["losses"], 1);
  EXPECT_EQ(served.worker("worker-1")["state"], "lost");  // none is started again
  served.process().signal(SIGINT);
  EXPECT_EQ(served.process().wait(), 0);
}

TEST(WorkerFaults, WithoutAnyWorkerRequestsFailAtOnceAndNotForEver) {
  ServedFleet served(front_and_back(1), {"--workers", "1", "--lease", "0.5"});
  ASSERT_TRUE(served.serves());
  Clients clients(served.port(), 3);
  let_run(clients, 5);
  ::kill(served.worker("worker-0")["pid"].get<pid_t>(), SIGKILL);
  EXPECT_TRUE(eventually([&] { return clients.failed > 10; }));
  expect_all_accounted_for(clients, served);
}

// A worker whose devices take ten times as long: what it has is put elsewhere, and what it answers in the end
// is dropped and counted.
TEST(WorkerFaults, SlowWorkersAreGivenUpAndTheirLateAnswersDropped) {
  const int port = own_port();
  ServedFleet served(front_and_back(3), {"--worker-port", std::to_string(port), "--lease", "1"});
  const auto worker = [port](const std::string& name, const std::string& devices,
                             const std::string& slowdown) {
    return std::make_unique<Process>(std::vector<std::string>{
        HEDDLE_PROGRAM, "worker", "--quiet", "--name", name, "--connect", "127.0.0.1:" + std::to_string(port),
        "--devices", devices, "--slowdown", slowdown});
  };
  const auto good = worker("good", "front=2,back=2", "1");
  const auto slow = worker("slow", "front=1,back=1", "20");
  ASSERT_TRUE(served.serves());
  // More than the good devices can have in hand, so that the slow ones are needed again and again.
  Clients clients(served.port(), 8);
  EXPECT_TRUE(eventually([&] { return served.status()["faults"]["late_answers"] >= 2; }));
  expect_all_accounted_for(clients, served);
  const auto faults = served.status()["faults"];
  EXPECT_GE(faults["given_up"], 2);
  EXPECT_GE(faults["rerun_rows"], 2);
  EXPECT_EQ(served.worker("slow")["state"], "connected");
}

TEST(WorkerFaults, AWorkerThatComesLateIsTakenIn) {
  const int port = own_port();
  ServedFleet served(front_and_back(1), {"--worker-port", std::to_string(port)});
  const auto worker = [port](const std::string& name) {
    return std::make_unique<Process>(
        std::vector<std::string>{HEDDLE_PROGRAM, "worker", "--quiet", "--name", name, "--connect",
                                 "127.0.0.1:" + std::to_string(port), "--devices", "front=1,back=1"});
  };
  auto first = worker("first");
  ASSERT_TRUE(served.serves());
  Clients clients(served.port(), 2);
  let_run(clients, 3);
  first.reset();
  EXPECT_TRUE(eventually([&] { return served.worker("first")["state"] == "lost"; }));
  const auto second = worker("second");
  EXPECT_TRUE(eventually([&] { return served.is_connected("second"); }));
  let_run(clients, 3);
  // It ends as it was asked to, and says so on the way.
  second->signal(SIGTERM);
  EXPECT_TRUE(eventually([&] { return served.worker("second")["state"] == "lost"; }));
  expect_all_accounted_for(clients, served);
}

}  // namespace
}  // namespace heddle
