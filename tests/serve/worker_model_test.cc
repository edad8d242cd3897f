// Models with files whose parts run in workers: what comes out is what the whole model gives, whatever dies,
// and files that do not fit are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>

#include "heddle/cluster/cluster.h"
#include "heddle/fleet/fleet_planner.h"
#include "heddle/runtime/backend.h"
#include "heddle/serve/machine_fleet.h"
#include "heddle/serve/worker.h"
#include "model_files.h"
#include "serve_process.h"
#include "skip_model.h"
#include "workers/feature_maps.h"

namespace heddle {
namespace {

using testing::HasSubstr;

// Clients that send one request after the other and know the answers.
class SkipClients {
 public:
  SkipClients(int port, int count, double relative) : relative_(relative) {
    for (int c = 0; c < count; ++c) threads_.emplace_back([this, port, c] { run(port, c); });
  }
  ~SkipClients() { stop(); }
  void stop() {
    quit_ = true;
    for (auto& t : threads_)
      if (t.joinable()) t.join();
  }
  void let_answer(int more) {
    const int until = answered + more;
    EXPECT_TRUE(eventually([&] { return answered >= until; })) << answered << " of " << until;
  }

  std::atomic<int> sent{0}, answered{0}, failed{0}, wrong{0}, unanswered{0};

 private:
  bool right(const Json& answer, const float* x) const {
    if (answer["outputs"].size() != 2) return false;
    for (size_t i = 0; i < 3; ++i) {
      const double y = x[i] + static_cast<float>(i + 1), z = z_of(x[i], i);
      const double got_y = answer["outputs"][0]["data"][i], got_z = answer["outputs"][1]["data"][i];
      if (std::abs(got_y - y) > 1e-5 * std::abs(y) + 1e-5) return false;
      if (std::abs(got_z - z) > relative_ * std::abs(z) + 1e-5) return false;
    }
    return true;
  }
  void run(int port, int c) {
    RawClient client(port);
    for (int i = 0; !quit_; ++i) {
      const float x[] = {static_cast<float>(100 * c + i % 100) - 150, static_cast<float>(i % 7) + .25F,
                         -static_cast<float>(c)};
      const Json request = {
          {"inputs",
           {{{"name", "x"}, {"shape", {1, 3}}, {"datatype", "FP32"}, {"data", {x[0], x[1], x[2]}}}}}};
      ++sent;
      const auto answer = client.ask("POST", "/v2/models/skip/infer", request.dump());
      if (answer.status == 0) {
        ++unanswered;
        return;
      }
      const auto json = parse_json(answer.body);
      if (answer.status != 200 || !json.ok()) {
        ++failed;
      } else {
        wrong += right(*json, x) ? 0 : 1;
        ++answered;
      }
    }
  }

  const double relative_;
  std::atomic<bool> quit_{false};
  std::vector<std::thread> threads_;
};

void expect_all_right(SkipClients& clients) {
  clients.stop();
  EXPECT_GT(clients.answered, 0);
  EXPECT_EQ(clients.wrong, 0);
  EXPECT_EQ(clients.unanswered, 0);
  EXPECT_EQ(clients.sent, clients.answered + clients.failed);
}

class WorkerModels : public testing::Test {
 protected:
  void SetUp() override {
    singles_ = single_cores();
    if (singles_.size() < 2) GTEST_SKIP() << "this machine has no two cores";
    path_ = folder_.write("skip.onnx", skip_model());
    fleet_ = skip_fleet(path_, {singles_[0]}, {singles_[1]});
    ASSERT_EQ(fleet_.models.size(), 1U);
    fleet_.models[0].slo_us = 5e6;
    for (auto& of_class : fleet_.models[0].latency_us) of_class[0].resize(1);  // no batch to fill
  }
  TestFolder folder_;
  std::vector<std::string> singles_;
  std::string path_;
  Fleet fleet_;
};

TEST_F(WorkerModels, PartsInWorkersGiveWhatTheWholeGives) {
  for (const bool half : {false, true}) {
    fleet_.models[0].file.fp16_cuts = half;
    ServedFleet served(fleet_, {"--workers", "2"});
    ASSERT_TRUE(served.serves());
    EXPECT_THAT(served.status()["models"][0]["note"].get<std::string>(),
                HasSubstr(half ? "fp16" : "in parts"));
    SkipClients clients(served.port(), 3, half ? 2e-3 : 1e-5);
    clients.let_answer(30);
    expect_all_right(clients);
    EXPECT_EQ(clients.failed, 0);
    const Json status = served.status();
    for (const auto& w : status["workers"]) {
      EXPECT_EQ(w["virtual_devices"], 1);
      EXPECT_GE(w["runs"], 30);
    }
    for (const auto& pool : status["pools"]) EXPECT_GT(pool["busy_s"].get<double>(), 0);
  }
}

// One more of each: what a worker loses the other one does.
TEST_F(WorkerModels, KilledAndStoppedWorkersLoseNoRequest) {
  for (auto& c : fleet_.classes) {
    c.count = 2;
    c.devices.clear();  // the workers name them
  }
  const int port = own_port();
  const auto devices = "front=" + singles_[0] + ",back=" + singles_[1];
  ServedFleet served(fleet_, {"--worker-port", std::to_string(port), "--lease", "0.5"});
  const auto stays = worker_process(port, "stays", devices, {"--share-cores"});
  auto goes = worker_process(port, "goes", devices, {"--share-cores"});
  ASSERT_TRUE(served.serves());
  SkipClients clients(served.port(), 4, 1e-5);
  clients.let_answer(20);
  goes->signal(SIGKILL);
  EXPECT_TRUE(eventually([&] { return served.worker("goes")["state"] == "lost"; }));
  clients.let_answer(20);
  goes = worker_process(port, "goes", devices, {"--share-cores"});
  EXPECT_TRUE(eventually([&] { return served.is_connected("goes"); }));
  clients.let_answer(20);
  goes->signal(SIGSTOP);
  EXPECT_TRUE(eventually([&] { return served.worker("goes")["state"] != "connected"; }));
  clients.let_answer(20);
  goes->signal(SIGCONT);
  EXPECT_TRUE(eventually([&] { return served.is_connected("goes"); }));
  clients.let_answer(20);
  expect_all_right(clients);
  EXPECT_EQ(served.status()["models"][0]["in_plane"], 0);
}

// In one process: what makes a plan refused is easier seen.
class WorkersHere : public WorkerModels {
 protected:
  void start(const std::string& name, const WorkerOptions& wanted) {
    auto options = wanted;
    options.name = name;
    auto made = Worker::start(options, *bus_);
    ASSERT_TRUE(made.ok()) << made.error().to_string();
    workers_.push_back(std::move(*made));
  }
  void SetUp() override {
    WorkerModels::SetUp();
    if (IsSkipped()) return;
    auto bus = in_process_bus({});
    ASSERT_TRUE(bus.ok());
    bus_ = std::move(*bus);
    auto pool = WorkerPool::create(bus_, {});
    ASSERT_TRUE(pool.ok());
    pool_ = *pool;
  }
  // What becomes of the fleet's plan.
  Result<std::unique_ptr<Generation>> serve(const Fleet& fleet, double wait_s = 20) {
    HEDDLE_ASSIGN_OR_RETURN(const auto plan, plan_fleet(fleet, "auto", {}));
    const WorkerWait wait{*pool_, wait_s, WaitFor::kAll, {}};
    return machine_->generation(fleet, plan, &wait);
  }
  std::string refusal(const Fleet& fleet, double wait_s = 20) {
    const auto made = serve(fleet, wait_s);
    EXPECT_FALSE(made.ok());
    return made.ok() ? "" : made.error().to_string();
  }

  std::shared_ptr<WorkerBus> bus_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::shared_ptr<WorkerPool> pool_;
  std::unique_ptr<MachineFleet> machine_ = MachineFleet::create({});
};

TEST_F(WorkersHere, FilesAreCheckedOnTheWorkersHost) {
  TestFolder elsewhere;
  WorkerOptions options;
  options.devices = {{"front", 1}, {"back", 1}};
  options.models = std::filesystem::path(elsewhere.path("skip.onnx")).parent_path().string();
  start("w", options);
  EXPECT_THAT(refusal(fleet_), AllOf(HasSubstr("worker 'w' refuses"), HasSubstr("model 'skip'"),
                                     HasSubstr(elsewhere.path("skip.onnx"))));
  // Another model under the same name.
  elsewhere.write("skip.onnx", skip_model() + "\x12\x01x");
  EXPECT_THAT(refusal(fleet_), HasSubstr("another file than the one that was profiled"));
  std::filesystem::remove(elsewhere.path("skip.onnx"));
  elsewhere.write("skip.onnx", skip_model());
  const auto made = serve(fleet_);
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  EXPECT_TRUE((*made)->models[0]->remote);
  EXPECT_EQ((*made)->models[0]->outputs.size(), 2U);
}

TEST_F(WorkersHere, DevicesMayBeThoseOfACluster) {
  ClusterBuilder builder("mine");
  const HostId host = builder.add_host({.name = "here", .memory_bytes = 0});
  const auto machine = discover_machine().value();
  for (const auto& [name, same] : {std::pair("left", singles_[0]), std::pair("right", singles_[1])}) {
    Device device = machine->device(machine->find_device(same));
    device.name = name;
    device.host = host;
    builder.add_device(std::move(device));
  }
  WorkerOptions options;
  options.devices = {{"front", 1}, {"back", 1}};
  options.cluster = builder.build().value();
  start("w", options);
  EXPECT_THAT(refusal(fleet_), HasSubstr("cluster 'mine' has 'left' and 'right'"));
  fleet_.classes[0].devices = {"left"};
  fleet_.classes[1].devices = {"right"};
  const auto made = serve(fleet_);
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  EXPECT_TRUE((*made)->models[0]->remote);
}

TEST_F(WorkersHere, DevicesMustBeThereAndApart) {
  WorkerOptions options;
  options.devices = {{"front", 1}, {"back", 1}};
  start("w", options);
  auto fleet = fleet_;
  fleet.classes[0].devices = {"cpu999"};
  EXPECT_THAT(refusal(fleet), HasSubstr("names the device 'cpu999'"));
  fleet.classes[0].devices.clear();
  EXPECT_THAT(refusal(fleet), HasSubstr("names no devices"));
  fleet = fleet_;
  fleet.classes[1].devices = fleet.classes[0].devices;
  EXPECT_THAT(refusal(fleet), HasSubstr("share core"));
  fleet = fleet_;
  fleet.classes[0].count = 2;
  fleet.classes[0].devices.push_back(singles_[1]);
  EXPECT_THAT(refusal(fleet, .5), HasSubstr("no worker has 1 of class 'front'"));
  // The file here is looked at before any worker is asked.
  fleet = fleet_;
  fleet.models[0].file.hash ^= 1;
  EXPECT_THAT(refusal(fleet), HasSubstr("another file than the one that was profiled"));
}

class SharedCores : public WorkersHere {
 protected:
  void SetUp() override {
#if defined(HEDDLE_THREAD_SANITIZER)
    GTEST_SKIP() << "the thread sanitizer often waits for itself here (docs/measurements/checks.md)";
#endif
    WorkersHere::SetUp();
  }
  WorkerOptions on(const std::string& device_class, const std::string& device, bool share = false) const {
    WorkerOptions options;
    options.devices = {{device_class, 1}};
    options.device_names = {{device_class, {device}}};
    options.share_cores = share;
    return options;
  }
  WorkerState state_of(const std::string& name) const {
    for (const auto& w : pool_->workers())
      if (w.name == name) return w;
    return {};
  }
};

TEST_F(SharedCores, AreRefusedWhereTheyAreTakenForTwo) {
  start("w1", on("front", singles_[0]));
  start("w2", on("back", singles_[0], true));  // one of the two does not share
  EXPECT_THAT(refusal(fleet_),
              AllOf(HasSubstr("is also in a device of worker 'w"), HasSubstr("--share-cores")));
  workers_.pop_back();
  start("w3", on("back", singles_[1]));
  const auto made = serve(fleet_);
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  EXPECT_EQ(state_of("w3").reason, "");
  // One that comes in the place of the second waits until the first, whose core it has, is gone.
  workers_.pop_back();
  start("w4", on("back", singles_[0]));
  EXPECT_TRUE(eventually([&] { return state_of("w4").reason.find("worker 'w1'") != std::string::npos; }));
  EXPECT_EQ(state_of("w4").virtual_devices, 0U);
  workers_.erase(workers_.begin());
  EXPECT_TRUE(eventually([&] { return state_of("w4").virtual_devices == 1U; }));
  EXPECT_EQ(state_of("w4").reason, "");
}

TEST_F(SharedCores, AreServedAndToldOfWhereBothWorkersSaySo) {
  start("w1", on("front", singles_[0], true));
  start("w2", on("back", singles_[0], true));
  const auto made = serve(fleet_);
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  EXPECT_THAT(state_of("w1").reason, HasSubstr("is also in a device of worker 'w2'"));
  EXPECT_THAT(state_of("w2").reason, HasSubstr("is also in a device of worker 'w1'"));
}

TEST(FeatureIntake, TakesWhatWasAnnouncedAndNothingElse) {
  const auto announced = [](uint32_t row, uint64_t first, uint64_t second, uint64_t all) {
    worker::FeatureChunk chunk;
    chunk.set_batch(3);
    chunk.set_device(1);
    chunk.set_bytes(all);
    for (const uint64_t bytes : {first, second}) {
      auto& s = *chunk.add_sections();
      s.set_row(row);
      s.set_kind(worker::Section::FEATURE);
      s.set_index(9);
      s.set_bytes(bytes);
    }
    return chunk;
  };
  const auto data = [](const std::string& bytes) {
    worker::FeatureChunk chunk;
    chunk.set_data(bytes);
    return chunk;
  };
  FeatureIntake whole;
  ASSERT_TRUE(whole.take(announced(2, 3, 5, 8)));
  ASSERT_TRUE(whole.take(data("abcd")));  // across the sections' border
  EXPECT_FALSE(whole.complete());
  ASSERT_TRUE(whole.take(data("efgh")));
  ASSERT_TRUE(whole.complete());
  const auto map = whole.map();
  EXPECT_EQ(map.rows, 3U);
  ASSERT_EQ(map.sections->size(), 2U);
  EXPECT_EQ(std::memcmp((*map.sections)[0].bytes.data(), "abc", 3), 0);
  EXPECT_EQ(std::memcmp((*map.sections)[1].bytes.data(), "defgh", 5), 0);
  EXPECT_FALSE(FeatureIntake().take(announced(2, 3, 5, 9)));  // the sections are not all of it
  EXPECT_FALSE(FeatureIntake().take(announced(2, kMostMapBytes, 1, kMostMapBytes + 1)));
  EXPECT_FALSE(FeatureIntake().take(announced(kMaxFleetBatch, 3, 5, 8)));
  FeatureIntake longer;
  ASSERT_TRUE(longer.take(announced(0, 1, 1, 2)));
  EXPECT_FALSE(longer.take(data("abc")));
}

TEST(FeatureMaps, AreKeptUntilTheyAreReleased) {
  FeatureMaps maps;
  MapSections sections(1);
  sections[0].bytes.resize(10);
  maps.put(5, 1, computed_map(sections, 1));
  ASSERT_TRUE(maps.get(5, 1));
  EXPECT_EQ(maps.get(5, 1)->bytes, 10U);
  maps.release(5, 2);  // another device's
  EXPECT_TRUE(maps.get(5, 1));
  maps.release(5, 1);
  EXPECT_FALSE(maps.get(5, 1));
}

}  // namespace
}  // namespace heddle
