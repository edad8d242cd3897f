// Fleets whose models really run, in parts, on devices of this machine: what comes out is what the whole
// model gives, and what does not fit is refused.
#include "heddle/serve/machine_fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "heddle/cluster/cluster.h"
#include "heddle/fleet/fleet_planner.h"
#include "heddle/runtime/backend.h"
#include "heddle/serve/fleet_control.h"
#include "heddle/serve/rest_api.h"
#include "model_files.h"
#include "protocol/half_rows.h"
#include "serve_process.h"
#include "skip_model.h"

namespace heddle {
namespace {

using testing::HasSubstr;

class OnThisMachine : public testing::Test {
 protected:
  void SetUp() override {
    const auto singles = single_cores();
    if (singles.size() < 2) GTEST_SKIP() << "this machine has no two cores";
    path_ = folder_.write("skip.onnx", skip_model());
    fleet_ = skip_fleet(path_, {singles[0]}, {singles[1]});
    ASSERT_EQ(fleet_.models.size(), 1U);
  }
  void TearDown() override {
    if (server_) server_->stop(5);
    service_.stop(5);
    control_.reset();
  }

  Status start(const Fleet& fleet) {
    auto plan = plan_fleet(fleet, "auto", {});
    HEDDLE_RETURN_IF_ERROR(plan.ok() ? Status() : Status(plan.error()));
    FleetControlOptions options;
    options.machine = machine_.get();
    auto control = FleetControl::create(service_, fleet, *plan, options);
    HEDDLE_RETURN_IF_ERROR(control.ok() ? Status() : Status(control.error()));
    control_ = std::move(*control);
    return {};
  }
  void listen() {
    auto server = HttpServer::start({}, [this](const HttpHead& head, HttpBody body, HttpReply reply) {
      if (!control_->answer(head, body, reply)) answer_rest(service_, head, body, reply);
    });
    ASSERT_TRUE(server.ok());
    server_ = std::move(*server);
  }
  std::string refusal(const Fleet& fleet) {
    const auto status = start(fleet);
    EXPECT_FALSE(status.ok());
    return status.ok() ? "" : status.error().to_string();
  }
  // [x, 10 x, -x] through the service.
  Json infer(float x) const {
    RawClient client(server_->port());
    const auto text = std::to_string(x);
    const auto answer =
        client.ask("POST", "/v2/models/skip/infer",
                   R"({"inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [)" + text +
                       ", " + std::to_string(10 * x) + ", " + std::to_string(-x) + "]}]}");
    const auto json = parse_json(answer.body);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return json.ok() ? *json : Json();
  }
  void expect_right(float x, double relative) const {
    const Json answer = infer(x);
    if (!answer.is_object()) return;  // the status has the error
    ASSERT_EQ(answer["outputs"].size(), 2U);
    const float in[] = {x, 10 * x, -x};
    for (size_t i = 0; i < 3; ++i) {
      const double y = in[i] + static_cast<float>(i + 1), z = z_of(in[i], i);
      EXPECT_NEAR(answer["outputs"][0]["data"][i].get<double>(), y, 1e-5 * std::abs(y) + 1e-5);
      EXPECT_NEAR(answer["outputs"][1]["data"][i].get<double>(), z, relative * std::abs(z) + 1e-5);
    }
  }

  TestFolder folder_;
  std::string path_;
  Fleet fleet_;
  InferService service_;
  // Begins at once: reservation would fill batches as long as the deadlines allow.
  std::unique_ptr<MachineFleet> machine_ =
      MachineFleet::create({.plane = {.scheduler = SchedulerKind::kReactive}});
  std::unique_ptr<FleetControl> control_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(OnThisMachine, PartsGiveWhatTheWholeGives) {
  const auto status = start(fleet_);
  ASSERT_TRUE(status.ok()) << status.error().to_string();
  listen();
  const auto pools = service_.status()["pools"];
  ASSERT_EQ(pools.size(), 2U) << "one pipeline of two parts";
  EXPECT_THAT(service_.models().front()->note, HasSubstr("in parts"));
  // Many clients at once: rows share batches and come back to whom they belong.
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c)
    clients.emplace_back([this, c] {
      for (int i = 0; i < 10; ++i) expect_right(static_cast<float>(100 * c + i) - 150, 1e-5);
    });
  for (auto& t : clients) t.join();
  const auto used = service_.status()["pools"];
  for (const auto& pool : used) EXPECT_GT(pool["runs"], 0);
}

TEST_F(OnThisMachine, FeatureMapsMayTravelInHalfPrecision) {
  fleet_.models[0].file.fp16_cuts = true;
  fleet_.models[0].cut_bytes[1] = 12;
  for (auto& of_class : fleet_.models[0].latency_us) of_class[0].resize(1);  // no batch to fill
  machine_ = MachineFleet::create({.plane = {.scheduler = SchedulerKind::kReservation}});
  ASSERT_TRUE(start(fleet_).ok());
  listen();
  EXPECT_THAT(service_.models().front()->note, HasSubstr("fp16"));
  expect_right(1.2345F, 2e-3);
}

// Above 65504 a half is infinite: no bound on errors makes that right.
TEST_F(OnThisMachine, FeatureMapsThatHalvesCannotHoldAreRefused) {
  path_ = folder_.write("skip.onnx", skip_model(1e6F));
  fleet_ = skip_fleet(path_, fleet_.classes[0].devices, fleet_.classes[1].devices);
  fleet_.models[0].file.fp16_cuts = true;
  EXPECT_THAT(refusal(fleet_), HasSubstr("values above 65504"));
  fleet_.models[0].file.fp16_cuts = false;
  EXPECT_TRUE(start(fleet_).ok());
}

TEST_F(OnThisMachine, AChangeKeepsWhatIsCompiledAndServesOn) {
  ASSERT_TRUE(start(fleet_).ok());
  listen();
  expect_right(3, 1e-5);
  auto changed = fleet_;
  changed.models[0].slo_us = 30e6;
  changed.classes[1].slowdown = 2;
  EXPECT_EQ(RawClient(server_->port()).ask("POST", "/v2/fleet", to_json(changed).dump()).status, 200);
  expect_right(4, 1e-5);
  // Over the network no other file can be brought in.
  changed.models[0].file.path = folder_.write("other.onnx", skip_model());
  const auto refused = RawClient(server_->port()).ask("POST", "/v2/fleet", to_json(changed).dump());
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body, HasSubstr("cannot bring another model file"));
  expect_right(5, 1e-5);
}

TEST_F(OnThisMachine, RefusesWhatDoesNotFit) {
  auto fleet = fleet_;
  fleet.models[0].file.path += ".gone";
  EXPECT_THAT(refusal(fleet), HasSubstr(".gone"));
  fleet = fleet_;
  fleet.models[0].file.hash ^= 1;
  EXPECT_THAT(refusal(fleet), HasSubstr("another file than the one that was profiled"));
  fleet = fleet_;
  fleet.models[0].file.block_of.push_back(1);
  EXPECT_THAT(refusal(fleet), HasSubstr("run `heddle fleet profile` again"));
  fleet = fleet_;
  fleet.classes[0].devices = {"cpu999"};
  EXPECT_THAT(refusal(fleet), HasSubstr("names the device 'cpu999'"));
  fleet = fleet_;
  fleet.classes[1].devices = fleet.classes[0].devices;
  EXPECT_THAT(refusal(fleet), HasSubstr("share core"));
  fleet = fleet_;
  fleet.classes[1].devices.clear();
  EXPECT_THAT(refusal(fleet), HasSubstr("names no devices of this machine"));
  fleet = fleet_;
  fleet.classes[1].count = 2;
  EXPECT_THAT(refusal(fleet), HasSubstr("count"));
  // The parts' order must be one in which the model can be computed.
  fleet = fleet_;
  for (int& block : fleet.models[0].file.block_of) block = 1 - block;
  EXPECT_NE(refusal(fleet), "");
}

// The devices' names are those of a cluster file, where one is given.
TEST_F(OnThisMachine, ClassesNameTheDevicesOfACluster) {
  ClusterBuilder builder("mine");
  const HostId host = builder.add_host({.name = "here", .memory_bytes = 0});
  const auto machine = discover_machine().value();
  for (const auto& [name, same] :
       {std::pair("left", fleet_.classes[0].devices[0]), std::pair("right", fleet_.classes[1].devices[0])}) {
    Device device = machine->device(machine->find_device(same));
    device.name = name;
    device.host = host;
    builder.add_device(std::move(device));
  }
  builder.add_device({.name = "unreal", .host = host, .backend = "emulated"});
  machine_ = MachineFleet::create(
      {.plane = {.scheduler = SchedulerKind::kReactive}, .cluster = builder.build().value()});
  EXPECT_THAT(refusal(fleet_), HasSubstr("cluster 'mine' has 'left', 'right' and 'unreal'"));
  fleet_.classes[0].devices = {"unreal"};
  EXPECT_THAT(refusal(fleet_), HasSubstr("computes nothing (backend emulated)"));
  fleet_.classes[0].devices = {"left"};
  fleet_.classes[1].devices = {"right"};
  ASSERT_TRUE(start(fleet_).ok());
  listen();
  expect_right(3, 1e-5);
}

TEST_F(OnThisMachine, TheFileIsReadAndWritten) {
  fleet_.models[0].file.shapes["x"] = {1, 3};
  fleet_.models[0].file.fp16_cuts = true;
  fleet_.models[0].file.hash = 0x1234567890123456;  // in YAML it must not become a number
  fleet_.models[0].file.path = "skip.onnx";
  fleet_.classes[0].slowdown = 2.5;
  for (const std::string name : {"fleet.json", "fleet.yaml"}) {
    ASSERT_TRUE(write_fleet(folder_.path(name), fleet_).ok());
    const auto read = read_fleet(folder_.path(name));
    ASSERT_TRUE(read.ok()) << read.error().to_string();
    const auto& file = read->models[0].file;
    EXPECT_EQ(file.path, path_) << "from the fleet file's folder";
    EXPECT_EQ(file.hash, fleet_.models[0].file.hash);
    EXPECT_EQ(file.block_of, fleet_.models[0].file.block_of);
    EXPECT_EQ(file.shapes, fleet_.models[0].file.shapes);
    EXPECT_TRUE(file.fp16_cuts);
    EXPECT_EQ(read->classes[0].devices, fleet_.classes[0].devices);
    EXPECT_EQ(read->classes[0].slowdown, 2.5);
  }
  const auto wrong = [this](const std::function<void(Json&)>& change) {
    Json json = to_json(fleet_);
    change(json["models"][0]["file"]);
    const auto read = fleet_from_json(json);
    EXPECT_FALSE(read.ok());
    return read.ok() ? std::string() : read.error().to_string();
  };
  EXPECT_THAT(wrong([](Json& f) { f["hash"] = "12"; }), HasSubstr("16 lower-case hexadecimal digits"));
  EXPECT_THAT(wrong([](Json& f) { f["ops"] = Json({{2, 0}, {1, 7}}); }), HasSubstr("block 7"));
  EXPECT_THAT(wrong([](Json& f) { f["ops"] = Json({{2, 0, 1}}); }), HasSubstr("how many ops"));
  EXPECT_THAT(wrong([](Json& f) { f["ops"] = Json::array(); }), HasSubstr("which ops the blocks have"));
  EXPECT_THAT(wrong([](Json& f) { f["feature_maps"] = "fp8"; }), HasSubstr("fp16"));
  EXPECT_THAT(wrong([](Json& f) { f["where"] = "x"; }), HasSubstr("where"));
}

// As a user: profile, look, serve.
TEST_F(OnThisMachine, WhatIsProfiledIsServed) {
  const auto file = folder_.path("fleet.json");
  Process profile({HEDDLE_PROGRAM, "fleet", "profile", path_, "-o", file, "--blocks", "2", "--batches", "2",
                   "--slo-factor", "1e6", "--store", folder_.path("store.sqlite"), "--quiet"});
  while (!profile.line().empty()) {
  }
  ASSERT_EQ(profile.wait(), 0);
  const auto fleet = read_fleet(file);
  ASSERT_TRUE(fleet.ok()) << fleet.error().to_string();
  EXPECT_FALSE(fleet->classes.front().devices.empty());
  EXPECT_EQ(fleet->models.front().file.path, path_);
  ServedFleet served(*fleet, {"--scheduler", "reactive"});
  ASSERT_TRUE(served.serves());
  const auto answer =
      RawClient(served.port())
          .ask("POST", "/v2/models/skip/infer",
               R"({"inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1, 1, 1]}]})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const auto json = parse_json(answer.body);
  ASSERT_TRUE(json.ok());
  EXPECT_EQ((*json)["outputs"][1]["data"], Json({6, 12, 20}));
}

TEST(HalfRows, AreExactWhereHalvesAre) {
  std::vector<std::byte> halves(2 * 65536), floats(4 * 65536 + 1), back(2 * 65536);
  for (size_t i = 0; i < 65536; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    std::memcpy(halves.data() + 2 * i, &bits, 2);
  }
  halves_to_floats(halves.data(), 65536, floats.data() + 1);  // not aligned
  floats_to_halves(floats.data() + 1, 65536, back.data());
  for (size_t i = 0; i < 65536; ++i) {
    float value;
    std::memcpy(&value, floats.data() + 1 + 4 * i, 4);
    uint16_t bits;
    std::memcpy(&bits, back.data() + 2 * i, 2);
    if (!std::isnan(value)) {
      ASSERT_EQ(bits, i) << value;
    } else {
      ASSERT_EQ(bits & 0x7c00, 0x7c00) << "not a number stays none";
    }
  }
}

TEST(HalfRows, RoundToTheNearestWithinTheBound) {
  Random random(7);
  for (size_t count : {1U, 7U, 8U, 9U, 1000U}) {
    std::vector<float> in(count), out(count);
    std::vector<std::byte> halves(2 * count);
    for (auto& v : in) v = static_cast<float>(random.uniform(-1, 1) * std::pow(10, random.uniform(-3, 4)));
    floats_to_halves(reinterpret_cast<const std::byte*>(in.data()), count, halves.data());
    halves_to_floats(halves.data(), count, reinterpret_cast<std::byte*>(out.data()));
    for (size_t i = 0; i < count; ++i)
      EXPECT_LE(std::abs(out[i] - in[i]), std::max(std::abs(in[i]) * 0x1p-11, 0x1p-25)) << in[i];
  }
}

}  // namespace
}  // namespace heddle
