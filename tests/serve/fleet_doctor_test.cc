// `heddle doctor URL` on a server and workers in which each fault is put in; and its rules on answers made by hand.
#include "heddle/serve/fleet_doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "fleet_clients.h"
#include "heddle/base/json_fields.h"
#include "heddle/base/stopwatch.h"
#include "heddle/runtime/affinity.h"
#include "model_files.h"
#include "relayed_host.h"
#include "skip_model.h"
#include "standby_servers.h"

namespace heddle {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// What the program found: "check: where: what" each.
struct Examined {
  int status = -1;
  std::vector<std::string> findings;
};

Examined examine(int port, const std::vector<std::string>& more = {}) {
  std::vector<std::string> command = {HEDDLE_PROGRAM, "doctor", "http://127.0.0.1:" + std::to_string(port),
                                      "--json",       "--for",  "1"};
  command.insert(command.end(), more.begin(), more.end());
  Process doctor(command);
  std::string text;
  for (auto line = doctor.line(); !line.empty(); line = doctor.line()) text += line + "\n";
  Examined out;
  out.status = doctor.wait();
  const auto json = parse_json(text);
  EXPECT_TRUE(json.ok()) << text;
  if (!json.ok() || !json->contains("findings")) return out;
  for (const auto& f : (*json)["findings"]) {
    EXPECT_NE(f["todo"], "");
    out.findings.push_back(f["check"].get<std::string>() + ": " + f["where"].get<std::string>() + ": " +
                           f["what"].get<std::string>());
  }
  EXPECT_EQ(out.status, out.findings.empty() ? 0 : 1) << text;
  EXPECT_EQ((*json)["healthy"], out.findings.empty());
  return out;
}

// What doctor finds between two looks at the server. The second is taken once the server has measured enough: with
// doctor's own window, that would depend on how busy the machine is.
template <class Enough>
std::vector<std::string> findings_after(const ServedFleet& served, const Enough& enough) {
  FleetAnswers answers;
  const Stopwatch watch;
  answers.before = served.status();
  EXPECT_TRUE(eventually([&] {
    answers.after = served.status();
    return enough(answers.before, answers.after);
  })) << answers.after.dump();
  answers.seconds = watch.seconds();
  RawClient client(served.port());
  answers.fleet = parse_json(client.ask("GET", "/v2/fleet").body).value();
  answers.index = parse_json(client.ask("POST", "/v2/repository/index").body).value();
  std::vector<std::string> found;
  for (const auto& f : diagnose(answers, .99).findings)
    found.push_back(f.check + ": " + f.where + ": " + f.what);
  return found;
}

// Of a worker in an answer to v2/status; null where there is none of the name.
Json worker_in(const Json& status, const std::string& name) {
  const Json* const worker = member_in(list_in(status, "workers"), name);
  return worker == nullptr ? Json() : *worker;
}
double maps_sent_by(const Json& status, const std::string& name) {
  const Json worker = worker_in(status, name);
  double maps = 0;
  for (const auto& link : list_in(worker, "links")) maps += number_in(link, "maps");
  return maps;
}
double devices_lost(const Json& status) {
  double lost = 0;
  for (const auto& pool : list_in(status, "pools")) lost += number_in(pool, "lost");
  return lost;
}
// A worker's devices that compute for which it is said.
template <class Is>
bool any_device(const Json& status, const std::string& name, const Is& is) {
  const Json worker = worker_in(status, name);
  return std::ranges::any_of(list_in(worker, "cores"), is);
}

int64_t clock_ahead() { return wall_ns() + 5 * kNsPerSecond; }
int64_t clock_behind() { return wall_ns() - 5 * kNsPerSecond; }

// A fleet of timed devices whose workers the test starts.
class DoctorOfFleet : public testing::Test {
 protected:
  void start(Fleet fleet = front_and_back(1)) {
    served_ = std::make_unique<ServedFleet>(
        fleet, std::vector<std::string>{"--worker-port", std::to_string(port_), "--lease", "0.5"});
  }
  RelayedHost& worker(const std::string& name, const std::map<std::string, int64_t>& devices,
                      const WorkerOptions& options = {}) {
    hosts_.push_back(std::make_unique<RelayedHost>(name, port_, devices, options));
    return *hosts_.back();
  }
  void serve() { ASSERT_TRUE(served_->serves()); }
  int port() const { return served_->port(); }

  const int port_ = own_port();
  std::unique_ptr<ServedFleet> served_;
  std::vector<std::unique_ptr<RelayedHost>> hosts_;
};

TEST_F(DoctorOfFleet, OfAFleetThatIsWellFindsNothing) {
  // A long SLO and slow links by its file: other work on the machine makes none of them look bad.
  auto fleet = front_and_back(1);
  fleet.models[0].slo_us = 60e6;
  for (auto& c : fleet.classes) c.nic_bytes_per_s = 1e7;
  start(fleet);
  worker("front", {{"front", 1}});
  worker("back", {{"back", 1}});
  serve();
  Clients clients(port(), 2);
  let_run(clients, 60);
  EXPECT_THAT(examine(port()).findings, IsEmpty());
}

TEST_F(DoctorOfFleet, ClocksThatAreOff) {
  start();
  WorkerOptions ahead, behind;
  ahead.clock = clock_ahead;
  behind.clock = clock_behind;
  worker("front", {{"front", 1}}, ahead);
  worker("back", {{"back", 1}}, behind);
  serve();
  ASSERT_TRUE(eventually([&] {
    const auto status = served_->status();
    return worker_in(status, "front").contains("clock_ahead_us") &&
           worker_in(status, "back").contains("clock_ahead_us");
  }));
  const auto found = examine(port()).findings;
  // Give or take half of a round trip.
  EXPECT_THAT(
      found,
      Contains(ContainsRegex("clocks: worker front: its clock is [45]\\.[0-9]+ s ahead of the server's")));
  EXPECT_THAT(
      found,
      Contains(ContainsRegex("clocks: worker back: its clock is [45]\\.[0-9]+ s behind the server's")));
}

TEST_F(DoctorOfFleet, ProgramsOfOtherVersions) {
  start();
  WorkerOptions old;
  old.program = "0.0.9";
  worker("front", {{"front", 1}}, old);
  worker("back", {{"back", 1}});
  serve();
  const auto found = examine(port()).findings;
  EXPECT_THAT(found, Contains(HasSubstr("versions: worker front: its program is 0.0.9, the server's ")));
  EXPECT_THAT(found, Not(Contains(HasSubstr("versions: worker back"))));
}

TEST_F(DoctorOfFleet, SlowLinksToTheServerAndBetweenWorkers) {
  start();
  worker("front", {{"front", 1}});
  auto& back = worker("back", {{"back", 1}});
  serve();
  back.to_worker().delay(std::chrono::milliseconds(20), Relay::Calls::kFeatures);
  Clients clients(port(), 2);
  EXPECT_THAT(
      findings_after(*served_,
                     [](const Json& before, const Json& after) {
                       return maps_sent_by(after, "front") >= maps_sent_by(before, "front") + 10;
                     }),
      Contains(AllOf(HasSubstr("links: worker front to worker back: a feature map of 293.0 KiB takes"),
                     HasSubstr("300 us by the fleet file's bandwidth"))));
  back.to_worker().delay(std::chrono::milliseconds(60), Relay::Calls::kSessions);
  // The least of its last round trips: once those from before the delay are gone.
  EXPECT_THAT(findings_after(*served_,
                             [](const Json&, const Json& after) {
                               return number_in(worker_in(after, "back"), "round_trip_us") >= 60'000;
                             }),
              Contains(AllOf(HasSubstr("links: server to worker back: a message and its answer take"),
                             HasSubstr("a twentieth of the shortest SLO"))));
}

TEST_F(DoctorOfFleet, PoolsWithoutDevicesAndTheLostWorker) {
  start(front_and_back(2));
  worker("front", {{"front", 2}});
  worker("back-1", {{"back", 1}});
  worker("back-2", {{"back", 1}});
  serve();
  hosts_.pop_back();
  ASSERT_TRUE(eventually([&] { return devices_lost(served_->status()) == 1; }));
  EXPECT_THAT(examine(port()).findings, Contains(HasSubstr("part 1 on class back: 1 of 2 devices are gone")));
  hosts_.pop_back();
  ASSERT_TRUE(eventually([&] { return devices_lost(served_->status()) == 2; }));
  EXPECT_THAT(examine(port()).findings,
              Contains(HasSubstr("pools: model net, pipeline 0, part 1 on class back: no device is left")));
}

TEST_F(DoctorOfFleet, AttainmentBelowTheTarget) {
  auto fleet = front_and_back(1);
  fleet.models[0].slo_us = 200'000;
  start(fleet);
  WorkerOptions slow;
  slow.slowdown = 8;  // 160 ms instead of 20
  worker("front", {{"front", 1}}, slow);
  worker("back", {{"back", 1}}, slow);
  serve();
  Clients clients(port(), 8);
  EXPECT_THAT(
      findings_after(*served_, [](const Json&, const Json& after) { return requests_of(after) >= 60; }),
      Contains(AllOf(HasSubstr("attainment: model net: of "), HasSubstr("99.0 % are wanted"))));
  const auto modest = examine(port(), {"--attainment", "0"});
  EXPECT_THAT(modest.findings, Not(Contains(HasSubstr("attainment"))));
}

TEST_F(DoctorOfFleet, AServerThatIsGone) {
  const auto gone = examine(port_);
  EXPECT_THAT(gone.findings, Contains(HasSubstr("server: http://127.0.0.1:")));
}

// Parts that compute on core sets.
class DoctorOfCores : public testing::Test {
 protected:
  void SetUp() override {
    singles_ = single_cores();
    if (singles_.size() < 2) GTEST_SKIP() << "this machine has no two cores";
    path_ = folder_.write("skip.onnx", skip_model());
  }
  void start(const Fleet& fleet) {
    served_ = std::make_unique<ServedFleet>(
        fleet, std::vector<std::string>{"--worker-port", std::to_string(port_), "--lease", "0.5"});
  }
  Fleet fleet() const { return skip_fleet(path_, {singles_[0]}, {singles_[1]}); }
  std::unique_ptr<Process> worker(const std::string& name, const std::string& devices,
                                  const std::vector<std::string>& more = {}) const {
    return worker_process(port_, name, devices, more);
  }
  static std::vector<int> cores_of(const std::string& device) {
    const auto cluster = discover_local();
    for (const auto& d : (*cluster)->devices())
      if (d.name == device) return d.cores;
    return {};
  }

  TestFolder folder_;
  std::vector<std::string> singles_;
  std::string path_;
  const int port_ = own_port();
  std::unique_ptr<ServedFleet> served_;
};

TEST_F(DoctorOfCores, OverlapsAndFilesThatAreMissing) {
  start(fleet());
  const auto front = worker("front", "front=" + singles_[0]);
  auto back = worker("back", "back=" + singles_[1]);
  ASSERT_TRUE(served_->serves());
  back.reset();
  back = worker("late", "back=" + singles_[0]);
  ASSERT_TRUE(
      eventually([&] { return any_device(served_->status(), "late", [](const Json&) { return true; }); }));
  EXPECT_THAT(examine(served_->port()).findings,
              Contains(AllOf(HasSubstr("cores: worker front, device "), HasSubstr("overlap with core"),
                             HasSubstr("of worker late on the same host"))));
  back.reset();
  TestFolder empty;
  back = worker("poor", "back=" + singles_[1],
                {"--models", std::filesystem::path(empty.path("x")).parent_path().string()});
  ASSERT_TRUE(eventually([&] {
    return any_device(served_->status(), "poor",
                      [](const Json& d) { return !text_in(d, "refused").empty(); });
  }));
  EXPECT_THAT(examine(served_->port()).findings,
              Contains(AllOf(HasSubstr("models: worker poor, device "),
                             HasSubstr("it does not load its part: model 'skip'"), HasSubstr("skip.onnx"))));
}

TEST_F(DoctorOfCores, ThreadsThatSomebodyHasBoundElsewhere) {
  start(fleet());
  const auto front = worker("front", "front=" + singles_[0]);
  const auto back = worker("back", "back=" + singles_[1]);
  ASSERT_TRUE(served_->serves());
  // As `taskset -ap` does.
  cpu_set_t other;
  CPU_ZERO(&other);
  for (const int core : cores_of(singles_[1])) CPU_SET(core, &other);
  const auto threads = "/proc/" + std::to_string(front->pid()) + "/task";
  for (const auto& thread : std::filesystem::directory_iterator(threads))
    ::sched_setaffinity(std::stoi(thread.path().filename().string()), sizeof other, &other);
  ASSERT_TRUE(eventually([&] {
    return any_device(served_->status(), "front", [](const Json& d) { return !list_in(d, "bound").empty(); });
  }));
  EXPECT_THAT(examine(served_->port()).findings,
              Contains(AllOf(HasSubstr("cores: worker front, device "), HasSubstr("its thread runs on core"),
                             HasSubstr(" instead of core"))));
}

// Products of matrices: a run of several turns on a core. A shorter one may have the core at once, whoever else
// wants it.
std::string products_model() {
  namespace ow = onnx_writer;
  constexpr int64_t kSize = 512;
  constexpr int kProducts = 400;
  std::vector<std::string> nodes;
  std::string last = "x";
  for (int i = 0; i < kProducts; ++i) {
    const std::string out = i + 1 == kProducts ? "y" : "t" + std::to_string(i);
    nodes.push_back(ow::node("MatMul", {last, "w"}, {out}, "product" + std::to_string(i)));
    last = out;
  }
  const std::vector<float> w(static_cast<size_t>(kSize * kSize), 1.F / kSize);
  return ow::model({nodes,
                    {ow::value("x", {-1, kSize})},
                    {ow::value("y", {-1, kSize})},
                    {ow::float_tensor("w", {kSize, kSize}, w)}});
}

TEST_F(DoctorOfCores, RunsThatHaveNoCore) {
  const auto path = folder_.write("products.onnx", products_model());
  const auto model = Model::load(path, {.batch = 1});
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  Fleet fleet;
  fleet.name = "busy";
  fleet.classes = {{.name = "front", .count = 1, .nic_bytes_per_s = 1e9, .devices = {singles_[0]}}};
  FleetModel net;
  net.name = "products";
  net.blocks = 1;
  net.cut_bytes = {2048, 2048};
  net.slo_us = 60e6;
  net.file.path = path;
  net.file.hash = (*model)->file_hash();
  net.file.block_of.assign((*model)->graph()->num_ops(), 0);
  net.latency_us = {{{{20'000}}}};
  fleet.models = {net};
  start(fleet);
  const auto front = worker("front", "front=" + singles_[0]);
  ASSERT_TRUE(served_->serves());
  std::atomic<bool> quit = false;
  std::vector<std::jthread> others;
  for (int i = 0; i < 4; ++i)
    others.push_back(start_thread_on(cores_of(singles_[0]), [&quit] {
      while (!quit) {
      }
    }));
  std::jthread client([&] {
    RawClient asks(served_->port());
    Json data = Json::array();
    for (int i = 0; i < 512; ++i) data.push_back(1);
    const auto body =
        Json{{"inputs", {{{"name", "x"}, {"shape", {1, 512}}, {"datatype", "FP32"}, {"data", data}}}}}.dump();
    while (!quit && asks.ask("POST", "/v2/models/products/infer", body).status == 200) {
    }
  });
  const auto computed_s = [](const Json& status) {
    return number_in(worker_in(status, "front"), "compute_s");
  };
  EXPECT_THAT(findings_after(*served_,
                             [&](const Json& before, const Json& after) {
                               return computed_s(after) >= computed_s(before) + 1;
                             }),
              Contains(AllOf(HasSubstr("cores: worker front: its runs had no core for"),
                             HasSubstr("% of their time"))));
  quit = true;
}

class DoctorOfStandby : public StandbyServers {
 protected:
  static std::string url(int number) { return "http://127.0.0.1:" + std::to_string(target(number).port); }
  // A standby of this leader.
  static bool follows(int number, const std::string& leader) {
    const auto answer = ask_http(target(number), "GET", "/v2/status", "", 5);
    const auto json = parse_json(answer.ok() ? answer->body : "null");
    return json.ok() && text_in(*json, "leader") == leader;
  }
};

TEST_F(DoctorOfStandby, AStandbyThatDoesNotAnswerOrFollowsSomebodyElse) {
  const auto first = server(0);
  const auto w = worker("w", {0});
  ASSERT_TRUE(eventually([] { return ready(0); }));
  EXPECT_THAT(examine(own_port(), {"--standby", url(1)}).findings,
              Contains(HasSubstr("standby: standby " + url(1) + ": it does not answer")));
  auto second = server(1);
  ASSERT_TRUE(eventually([] { return follows(1, "server-0"); }));
  EXPECT_THAT(examine(own_port(), {"--standby", url(1)}).findings, IsEmpty());
  // The standby itself is no server to ask.
  EXPECT_THAT(
      examine(own_port() + 10).findings,
      Contains(AllOf(HasSubstr("server: "), HasSubstr("this server is a standby; 'server-0' leads"))));
  second = server(1, "another-state");
  const auto w2 = worker("w2", {1});
  ASSERT_TRUE(eventually([] { return ready(1); }));
  EXPECT_THAT(examine(own_port(), {"--standby", url(1)}).findings,
              Contains(HasSubstr("standby: standby " + url(1) + ": it leads a fleet of its own")));
}

// What no test can put into real processes of one build.
TEST(Diagnose, VersionsOfTheProtocolAndModelsWithoutDevices) {
  FleetAnswers answers;
  answers.seconds = 2;
  answers.after = {
      {"version", "0.2.0"},
      {"protocol", 3},
      {"leader", {{"name", "a"}, {"term", 4}}},
      {"models", {{{"name", "net"}, {"rate_per_s", 0}, {"slo_us", 1e6}}}},
      {"workers",
       {{{"name", "old"}, {"state", "connected"}, {"program", ""}, {"protocol", 2}},
        {{"name", "older"}, {"state", "lost"}, {"reason", "upgrade the worker"}, {"protocol", 1}},
        {{"name", "silent"}, {"state", "lost"}, {"reason", "gone"}, {"protocol", 0}}}}};
  answers.before = answers.after;
  answers.fleet = {{"fleet", {{"models", {{{"name", "net"}}, {{"name", "other"}}}}}}};
  answers.index = {{{"name", "broken"}, {"state", "UNAVAILABLE"}, {"reason", "no such file"}}};
  answers.standbys = {{.name = "b", .answer = {{"leader", "z"}, {"version", "0.1.0"}}}};
  std::vector<std::string> found;
  for (const auto& f : diagnose(answers, .99).findings) found.push_back(f.where + ": " + f.what);
  EXPECT_THAT(found, testing::UnorderedElementsAre(
                         HasSubstr("worker old: it has version 2 of the workers' protocol, the server 3"),
                         AllOf(HasSubstr("worker older: it has version 1"), HasSubstr("upgrade the worker")),
                         HasSubstr("standby b: its program is 0.1.0, the server's 0.2.0"),
                         HasSubstr("standby b: it follows 'z', not 'a'"),
                         HasSubstr("model net: the plan gives it no devices"),
                         HasSubstr("model other: it is in the fleet and not served"),
                         HasSubstr("model broken: it is not served: no such file")));
}

TEST(Diagnose, CoreSetsOfOtherSizes) {
  FleetAnswers answers;
  const auto worker = [](const char* name, const Json& cores) {
    return Json{{"name", name},
                {"state", "connected"},
                {"cores", {{{"device", 1}, {"class", "fast"}, {"host", name}, {"cores", cores}}}}};
  };
  answers.after = {{"workers", {worker("a", {0, 1}), worker("b", {0, 1}), worker("c", {0})}}};
  const auto found = diagnose(answers, .99).findings;
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].where, "worker c, device 1 of class fast");
  EXPECT_THAT(found[0].what, HasSubstr("it has 1 core; most of its class have 2"));
}

// Any other program may answer there.
TEST(Diagnose, AnswersThatAreNoneOfHeddles) {
  FleetAnswers answers;
  for (const Json& strange :
       {Json(), Json::array({1, 2}), Json("text"),
        Json{{"workers", 7}, {"models", {3, nullptr}}, {"pools", "x"}},
        Json{{"workers", {{{"state", "connected"}, {"links", {1}}, {"cores", {{{"cores", "x"}}}}}}}}}) {
    answers.before = answers.after = answers.fleet = answers.index = strange;
    (void)diagnose(answers, .99);
  }
  answers.after = answers.before = {{"models", Json::array()}};
  answers.fleet = answers.index = Json();
  EXPECT_THAT(diagnose(answers, .99).findings, IsEmpty());
}

}  // namespace
}  // namespace heddle
