// A server and workers of which one end is a version of their protocol behind: requests run to their end, feature maps
// travel, and plans are changed.
#include <gtest/gtest.h>

#include <future>

#include "heddle/fleet/fleet_planner.h"
#include "heddle/serve/bus.h"
#include "heddle/serve/fleet_control.h"
#include "heddle/serve/remote_devices.h"
#include "heddle/serve/worker.h"
#include "heddle/serve/worker_pool.h"
#include "serve_process.h"
#include "simulation/service_world.h"
#include "workers/protocol_version.h"
#include "workers/worker_network.h"

namespace heddle {
namespace {

constexpr double kLongLease_s = 60;

enum class Behind { kServer, kWorkers };

// What version 3 does not have: that a worker leaves, and the answer.
void without_version_4(worker::ToWorker& message) { message.clear_left(); }
void without_version_4(worker::FromWorker& message) { message.clear_leaving(); }
template <class Message>
void as_one_behind(Message& message) {
  if (message.version() != 0) message.set_version(kWorkerProtocol - 1);
}

class SessionWithOneBehind final : public SessionCall, StreamListener {
 public:
  SessionWithOneBehind(Behind behind, std::unique_ptr<SessionCall> call)
      : behind_(behind), call_(std::move(call)) {}
  void start(StreamListener& listener) override {
    listener_ = &listener;
    call_->start(*this);
  }
  void cancel() override { call_->cancel(); }
  void read(worker::FromWorker* into) override {
    into_ = into;
    call_->read(into);
  }
  void write(const worker::ToWorker* message) override {
    sent_ = *message;
    without_version_4(sent_);
    if (behind_ == Behind::kServer) as_one_behind(sent_);
    call_->write(&sent_);
  }

 private:
  void read_done(bool ok) override {
    if (ok) {
      without_version_4(*into_);
      if (behind_ == Behind::kWorkers) as_one_behind(*into_);
    }
    listener_->read_done(ok);
  }
  void write_done(bool ok) override { listener_->write_done(ok); }
  void stream_ended(const grpc::Status& status) override { listener_->stream_ended(status); }

  const Behind behind_;
  const std::unique_ptr<SessionCall> call_;
  StreamListener* listener_ = nullptr;
  worker::FromWorker* into_ = nullptr;
  worker::ToWorker sent_;
};

// Feature maps of a worker that is behind.
class FeatureOfOneBehind final : public FeatureCall {
 public:
  explicit FeatureOfOneBehind(std::unique_ptr<FeatureCall> call) : call_(std::move(call)) {}
  void start(TimeNs patience) override { call_->start(patience); }
  bool write(const worker::FeatureChunk& chunk) override {
    auto sent = chunk;
    as_one_behind(sent);
    return call_->write(sent);
  }
  bool read(worker::FeatureReply& into) override { return call_->read(into); }
  grpc::Status finish() override { return call_->finish(); }
  void cancel() override { call_->cancel(); }

 private:
  const std::unique_ptr<FeatureCall> call_;
};

class LinkOfOneBehind final : public FeatureLink {
 public:
  explicit LinkOfOneBehind(std::unique_ptr<FeatureLink> link) : link_(std::move(link)) {}
  std::unique_ptr<FeatureCall> call() override { return std::make_unique<FeatureOfOneBehind>(link_->call()); }
  void reconnect() override { link_->reconnect(); }

 private:
  const std::unique_ptr<FeatureLink> link_;
};

class NetworkWithOneBehind final : public WorkerNetwork {
 public:
  explicit NetworkWithOneBehind(Behind behind) : behind_(behind) {}
  std::unique_ptr<SessionCall> session(const std::string& address, const WorkerSecurity& security) override {
    return std::make_unique<SessionWithOneBehind>(behind_, grpc_->session(address, security));
  }
  std::unique_ptr<FeatureLink> feature_link(const std::string& address,
                                            const WorkerSecurity& security) override {
    return std::make_unique<LinkOfOneBehind>(grpc_->feature_link(address, security));
  }
  Result<std::unique_ptr<WorkerListener>> listen(const std::string& host, int port,
                                                 const WorkerSecurity& security,
                                                 WorkerCalled& called) override {
    return grpc_->listen(host, port, security, called);
  }

 private:
  const Behind behind_;
  const std::shared_ptr<WorkerNetwork> grpc_ = grpc_worker_network();
};

class WorkerVersionBehind : public testing::TestWithParam<Behind> {
 protected:
  void SetUp() override {
    const auto network = std::make_shared<NetworkWithOneBehind>(GetParam());
    // Nothing here is late or lost, however busy the machine is.
    fleet_.models[0].slo_us = 60e6;
    auto bus = in_process_bus({.lease_s = kLongLease_s});
    ASSERT_TRUE(bus.ok());
    bus_ = std::move(*bus);
    // The front sends its feature maps as one that is behind, to a worker that takes them as one that is not.
    for (const std::string name : {"front", "back"}) {
      WorkerOptions options;
      options.name = name;
      options.devices = {{name, 1}};
      if (GetParam() == Behind::kWorkers && name == "front") options.network = network;
      auto started = Worker::start(options, *bus_);
      ASSERT_TRUE(started.ok()) << started.error().to_string();
      workers_.push_back(std::move(*started));
    }
    WorkerPoolOptions pool;
    pool.network = network;
    pool.lease_s = kLongLease_s;
    auto made = WorkerPool::create(bus_, pool);
    ASSERT_TRUE(made.ok()) << made.error().to_string();
    pool_ = std::move(*made);
    FleetControlOptions options;
    options.workers = pool_.get();
    const auto plan = plan_fleet(fleet_, "auto");
    ASSERT_TRUE(plan.ok()) << plan.error().to_string();
    auto control = FleetControl::create(service_, fleet_, *plan, options);
    ASSERT_TRUE(control.ok()) << control.error().to_string();
    control_ = std::move(*control);
  }
  void TearDown() override {
    service_.stop(5);
    control_ = nullptr;
  }
  // The error of a request, or of its answer; "": it was answered with what was asked.
  std::string ask() {
    InferRequest request = payload_request("net", random_);
    const auto& payload = request.inputs.front();
    const auto digest = payload_digest(payload.data, static_cast<size_t>(payload.bytes));
    std::promise<std::string> done;
    service_.infer(std::move(request), [&done, digest](const Result<InferResponse>& answer) {
      if (!answer.ok()) return done.set_value(answer.error().to_string());
      done.set_value(digest_of(answer) == digest ? "" : "another digest");
    });
    return done.get_future().get();
  }
  Status replace(const Fleet& fleet) {
    std::promise<Status> done;
    control_->replace(fleet, [&done](const Status& status) { done.set_value(status); });
    return done.get_future().get();
  }

  Random random_{1};
  Fleet fleet_ = front_and_back(1);
  std::shared_ptr<WorkerBus> bus_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::shared_ptr<WorkerPool> pool_;
  InferService service_;
  std::unique_ptr<FleetControl> control_;
};

TEST_P(WorkerVersionBehind, RunsRequestsAndFollowsChangesOfThePlan) {
  EXPECT_EQ(ask(), "");
  for (const auto& w : pool_->workers()) {
    EXPECT_EQ(w.state, "connected") << w.name << ": " << w.reason;
    EXPECT_EQ(w.protocol, GetParam() == Behind::kWorkers ? kWorkerProtocol - 1 : kWorkerProtocol);
  }
  for (int change = 0; change < 4; ++change) {
    fleet_.models[0].slo_us += 1000;
    const auto replaced = replace(fleet_);
    ASSERT_TRUE(replaced.ok()) << replaced.error().to_string();
    EXPECT_EQ(ask(), "") << "after change " << change;
  }
  EXPECT_GE(workers_[1]->counters().maps_received, 5u);
  for (const auto& w : pool_->workers()) EXPECT_EQ(w.losses, 0u) << w.name << ": " << w.reason;
  // A server that is behind does not answer a worker that ends, and is not waited for.
  if (GetParam() == Behind::kServer) workers_[0]->drain(3600);
}

INSTANTIATE_TEST_SUITE_P(Ends, WorkerVersionBehind, testing::Values(Behind::kServer, Behind::kWorkers),
                         [](const auto& test) {
                           return test.param == Behind::kServer ? "TheServer" : "TheWorkers";
                         });

}  // namespace
}  // namespace heddle
