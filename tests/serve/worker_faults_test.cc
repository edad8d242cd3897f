// Workers that die, hang, fall behind and return while clients send requests, all of them real processes:
// every request that was accepted gets one answer, right or an explicit failure, and none stays open.
#include <gmock/gmock.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "heddle/serve/live_plane.h"
#include "serve_process.h"

namespace heddle {
namespace {

using testing::HasSubstr;

constexpr TimeNs kSlo = 1'000'000'000;

// Clients that send one request after the other, each with bytes and an id of its own.
class Clients {
 public:
  Clients(int port, int count) {
    for (int c = 0; c < count; ++c) threads_.emplace_back([this, port, c] { run(port, c); });
  }
  ~Clients() { stop(); }
  void stop() {
    quit_ = true;
    for (auto& t : threads_)
      if (t.joinable()) t.join();
  }

  std::atomic<int> sent{0}, answered{0}, failed{0};
  std::atomic<int> unanswered{0}, wrong{0}, doubled{0}, too_long{0};

 private:
  void run(int port, int c) {
    RawClient client(port);
    for (int i = 0; !quit_; ++i) {
      const auto id = std::to_string(c) + "-" + std::to_string(i);
      std::vector<std::byte> payload(static_cast<size_t>(1 + (c * 131 + i * 17) % 400));
      Json data = Json::array();
      for (size_t b = 0; b < payload.size(); ++b) {
        payload[b] = static_cast<std::byte>((b * 7 + static_cast<size_t>(c * 31 + i)) & 0xff);
        data.push_back(static_cast<int>(payload[b]));
      }
      const Json request = {
          {"id", id},
          {"inputs",
           {{{"name", "payload"}, {"shape", {payload.size()}}, {"datatype", "UINT8"}, {"data", data}}}}};
      ++sent;
      const auto begun = live_now();
      const auto answer = client.ask("POST", "/v2/models/net/infer", request.dump());
      if (live_now() - begun > kSlo + kNsPerSecond) ++too_long;
      if (answer.status == 0) {
        ++unanswered;
        return;
      }
      const auto json = parse_json(answer.body);
      if (answer.status == 200 && json.ok()) {
        ++answered;
        uint64_t digest = 0;
        for (const auto& out : (*json)["outputs"])
          if (out["name"] == "digest") digest = out["data"][0];
        if ((*json)["id"] != id || digest != payload_digest(payload.data(), payload.size())) ++wrong;
      } else {
        ++failed;
        if (!json.ok() || !json->contains("error")) ++wrong;
      }
    }
    // A second answer to any request would stand in the connection now.
    client.finish_sending();
    if (!client.closed()) ++doubled;
  }

  std::atomic<bool> quit_{false};
  std::vector<std::thread> threads_;
};

int64_t requests_of(const Json& status) {
  int64_t all = 0;
  for (const char* fate : {"in_time", "late", "dropped", "failed", "withdrawn"})
    all += status["models"][0]["requests"][fate].get<int64_t>();
  return all;
}

void expect_all_accounted_for(Clients& clients, const ServedFleet& served) {
  clients.stop();
  EXPECT_GT(clients.answered, 0);
  EXPECT_EQ(clients.sent, clients.answered + clients.failed);
  EXPECT_EQ(clients.unanswered, 0);
  EXPECT_EQ(clients.wrong, 0);
  EXPECT_EQ(clients.doubled, 0);
  EXPECT_EQ(clients.too_long, 0);
  const auto status = served.status();
  EXPECT_EQ(requests_of(status), clients.sent);
  EXPECT_EQ(status["models"][0]["in_plane"], 0);
}

void let_run(const Clients& clients, int answers) {
  const int until = clients.answered + answers;
  EXPECT_TRUE(eventually([&] { return clients.answered >= until; }));
}

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
  EXPECT_THAT(served.worker("worker-2")["reason"].get<std::string>(), HasSubstr("nothing was heard"));
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
  Clients clients(served.port(), 4);
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
