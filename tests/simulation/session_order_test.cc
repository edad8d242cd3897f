// Sessions of a model with state on simulated threads: requests that run, wait, fail, come too late or are too many,
// and a change of the plan meanwhile.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <vector>

#include "heddle/base/simulation.h"
#include "heddle/base/sync.h"
#include "heddle/fleet/fleet_planner.h"
#include "heddle/serve/infer_service.h"

namespace heddle {
namespace {

constexpr int64_t kTurnMs = 1'000'000;

int64_t number_at(const std::byte* from) {
  int64_t value = 0;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// sum = s + x, and y = sum. Some runs fail.
class Adder final : public DeviceRunner {
 public:
  Status run(std::span<LiveRequest* const> batch) override {
    auto& random = Simulation::current().random();
    sleep_ns(random.between(1, 40) * kTurnMs);
    if (random.chance(.1)) return internal_error("the device has failed");
    for (LiveRequest* const request : batch) {
      const auto& row = static_cast<const TensorRow&>(*request);
      const int64_t sum = number_at(row.inputs[0]) + number_at(row.inputs[1]);
      for (std::byte* const output : row.outputs)
        if (output != nullptr) std::memcpy(output, &sum, sizeof sum);
    }
    return {};
  }
};

std::shared_ptr<ServedModel> adding_model() {
  const auto tensor = [](const char* name, bool state) {
    TensorInfo info;
    info.name = name;
    info.dtype = DType::kI64;
    info.row = {1};
    info.row_bytes = sizeof(int64_t);
    info.state = state;
    return info;
  };
  auto model = std::make_shared<ServedModel>();
  model->name = "net";
  model->slo_us = 300e3;
  model->inputs = {tensor("x", false), tensor("s", true)};
  model->outputs = {tensor("y", false), tensor("sum", true)};
  auto state = std::make_shared<SessionState>();
  state->tensors.push_back({1, 1, sizeof(int64_t), {}});
  state->idle_ns = 3600 * kNsPerSecond;
  model->state = std::move(state);
  return model;
}

std::unique_ptr<Generation> adding_generation(const std::shared_ptr<const ServedModel>& model) {
  auto out = std::make_unique<Generation>();
  out->fleet.name = "adders";
  out->fleet.classes = {{.name = "card", .count = 2, .nic_bytes_per_s = 1e9}};
  FleetModel net;
  net.name = model->name;
  net.blocks = 1;
  net.cut_bytes = {8, 8};
  net.slo_us = model->slo_us;
  net.latency_us = {{{{40e3}}}};
  out->fleet.models = {net};
  out->plan = plan_fleet(out->fleet, "auto").value();
  out->models = {model};
  auto deployment = deploy(out->fleet, out->plan).value();
  std::vector<std::shared_ptr<DeviceRunner>> runners;
  for (size_t d = 0; d < deployment.devices.size(); ++d) runners.push_back(std::make_shared<Adder>());
  out->plane = LivePlane::create(std::move(deployment), {}, std::move(runners)).value();
  return out;
}

struct Counts {
  uint64_t good = 0, bad = 0;
};

// A client that sends without waiting for answers. The good ones come in the order of its requests, and each has the
// sum of all good ones since the session's start.
class Client {
 public:
  Client(InferService& service, int number, Counts& counts)
      : service_(service), id_(std::to_string(number)), counts_(counts) {}

  void send_all() {
    auto& random = Simulation::current().random();
    for (int i = 0; i < kRequests; ++i) {
      send(i == 0 || random.chance(.1));
      sleep_ns(random.between(1, 60) * kTurnMs);
    }
  }
  size_t answered() const { return answers_.size(); }
  static constexpr int kRequests = 30;

 private:
  void send(bool start) {
    const int number = sent_++;
    const auto x = std::make_shared<int64_t>(Simulation::current().random().between(1, 1000));
    InferRequest request;
    request.model = "net";
    request.session = {id_, start, false};
    request.inputs.push_back(
        {"x", DType::kI64, {1}, reinterpret_cast<const std::byte*>(x.get()), sizeof(int64_t), x});
    service_.infer(std::move(request), [this, number, start, x](const Result<InferResponse>& answer) {
      auto& simulation = Simulation::current();
      const auto name = "request " + std::to_string(number) + " of session " + id_;
      if (!answers_.emplace(number, answer.ok()).second) simulation.fail(name + " is answered twice");
      ++(answer.ok() ? counts_.good : counts_.bad);
      if (!answer.ok()) return;
      if (number <= last_good_) simulation.fail(name + " is answered behind a later one");
      last_good_ = number;
      sum_ = (start ? 0 : sum_) + *x;
      if (number_at(answer->outputs.at(0).data) != sum_)
        simulation.fail(name + " has another session's state");
    });
  }

  InferService& service_;
  const std::string id_;
  Counts& counts_;
  int sent_ = 0, last_good_ = -1;
  int64_t sum_ = 0;
  std::map<int, bool> answers_;
};

TEST(SimulatedSessions, AnswerEachRequestOnceAndInOrder) {
#if defined(HEDDLE_THREAD_SANITIZER)
  GTEST_SKIP() << "the thread sanitizer has too little memory for so many fibres";
#endif
  Counts counts;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Simulation simulation({.seed = seed});
    const auto status = simulation.run([&] {
      const std::shared_ptr<const ServedModel> model = adding_model();
      InferService service;
      SessionLimits limits;
      limits.waiting = 4;
      service.set_session_limits(limits);
      ASSERT_TRUE(service.serve(adding_generation(model)));
      std::vector<std::unique_ptr<Client>> clients;
      std::vector<Thread> threads;
      for (int c = 0; c < 4; ++c) {
        clients.push_back(std::make_unique<Client>(service, c, counts));
        threads.emplace_back([client = clients.back().get()] { client->send_all(); });
      }
      sleep_ns(simulation.random().between(100, 900) * kTurnMs);
      ASSERT_TRUE(service.serve(adding_generation(model)));
      for (auto& t : threads) t.join();
      sleep_ns(2000 * kTurnMs);
      for (const auto& client : clients)
        if (client->answered() != Client::kRequests) simulation.fail("a request has no answer");
      if (service.sessions()["net"].waiting != 0) simulation.fail("requests wait in their session");
      service.stop(1);
    });
    EXPECT_TRUE(status.ok()) << "seed " << seed << ": " << status.error().to_string();
  }
  EXPECT_GT(counts.good, 3000U);
  EXPECT_GT(counts.bad, 300U);
}

}  // namespace
}  // namespace heddle
