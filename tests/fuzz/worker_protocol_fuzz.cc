// Messages between servers, workers and the workers among themselves (worker.proto), whatever they hold: neither end
// crashes, hangs or keeps memory or threads without limit, and a session that ends says why. Timed devices, a simulated
// network and clock: the same bytes give the same run.
//
// Frames (proto_mutator.h), each a millisecond after the one before:
//   t  what a server sends a worker's session     f  a chunk of a feature map that another worker sends it
//   w  what a worker sends a server's session     h  the worker answers as a real one what it was asked so far
//   a  what a worker announces on the bus         r  a request for the server's data plane, of so many bytes
//   d  time passes: so many times 20 ms           e  the worker ends the session, the server does
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "heddle/base/simulation.h"
#include "heddle/fleet/fleet_plan.h"
#include "heddle/serve/live_plane.h"
#include "heddle/serve/worker.h"
#include "heddle/serve/worker_pool.h"
#include "proto_mutator.h"
#include "require.h"
#include "simulation/simulated_fleets.h"
#include "simulation/simulated_network.h"
#include "workers/protocol_version.h"

extern const std::string_view kFrameTags = "tttfwwwhrade";

std::unique_ptr<google::protobuf::Message> message_of(char tag) {
  if (tag == 't') return std::make_unique<heddle::worker::ToWorker>();
  if (tag == 'f') return std::make_unique<heddle::worker::FeatureChunk>();
  if (tag == 'w') return std::make_unique<heddle::worker::FromWorker>();
  return nullptr;
}

namespace {

using namespace heddle;

constexpr int64_t kMillisecond = 1'000'000;
constexpr size_t kMostThreads = 100;  // honest inputs of the largest size need fewer
constexpr const char *kWorker = "w:1", *kOther = "o:1";

class NoWatcher final : public SessionWatcher {
 public:
  void server_hears(Simulation::Process, const std::string&) override {}
  void server_calls(uint64_t, const std::string&) override {}
  void server_sends(uint64_t, const worker::ToWorker&) override {}
  void worker_gets(uint64_t, const worker::ToWorker&) override {}
  void server_gets(uint64_t, const worker::FromWorker&) override {}
  void worker_sends(uint64_t, const worker::FromWorker&) override {}
  void worker_ends(uint64_t) override {}
  void server_ends(uint64_t) override {}
  void server_is_told(uint64_t) override {}
};

class NoBus final : public Announcer {
 public:
  Status announce(const std::string&, const std::string&) override { return {}; }
  Status withdraw(const std::string&) override { return {}; }
  double lease_s() const override { return 1; }
};

// One end of a session that sends what it is given, one message after the other.
template <class Stream, class Sent, class Received>
class Sender : public StreamListener {
 public:
  explicit Sender(std::unique_ptr<Stream> stream) : stream_(std::move(stream)) {}
  void start() {
    stream_->start(*this);
    stream_->read(&incoming_);
  }
  void send(Sent message) {
    outbox_.push_back(std::move(message));
    if (outbox_.size() == 1) stream_->write(&outbox_.front());
  }
  bool ended() const { return ended_; }

  void read_done(bool ok) override {
    if (!ok) return closed();
    got(incoming_);
    stream_->read(&incoming_);
  }
  void write_done(bool ok) override {
    outbox_.pop_front();
    if (ok && !outbox_.empty()) stream_->write(&outbox_.front());
    if (!ok) outbox_.clear();
  }
  void stream_ended(const grpc::Status& status) override {
    ended_ = true;
    status_ = status;
    Simulation::current().wake(&ended_);
  }
  void wait_for_end() {
    while (!ended_) Simulation::current().wait(&ended_, INT64_MAX);
  }

 protected:
  virtual void got(const Received& message) = 0;
  virtual void closed() = 0;
  const std::unique_ptr<Stream> stream_;
  grpc::Status status_;

 private:
  Received incoming_;
  std::deque<Sent> outbox_;
  bool ended_ = false;
};

// The server of the frames, whose worker is real.
class FakeServer final : public Sender<SessionCall, worker::ToWorker, worker::FromWorker> {
 public:
  using Sender::Sender;
  ~FakeServer() override { require(status_.ok() || !status_.error_message().empty()); }
  void give(worker::ToWorker message) {
    if (message.has_run()) ++steps_[message.run().attempt()];
    if (message.has_transfer()) ++steps_[message.transfer().attempt()];
    // Parts that compute are read and compiled by threads of the system.
    if (message.has_load())
      for (auto& role : *message.mutable_load()->mutable_roles()) role.set_computes(false);
    send(std::move(message));
  }
  void close() {
    if (!std::exchange(cancelled_, true)) stream_->cancel();
    wait_for_end();
  }

 private:
  void got(const worker::FromWorker& message) override {
    if (!message.has_done()) return;
    const auto& done = message.done();
    require(steps_[done.attempt()]-- > 0);
    require(done.measured_ns() >= 0 && (done.error().empty() || done.measured_ns() == 0));
  }
  void closed() override {}
  std::map<uint64_t, int> steps_;  // by attempt, without an answer
  bool cancelled_ = false;
};

// The worker of the frames, whose server is real.
class FakeWorker final : public Sender<CalledSession, worker::FromWorker, worker::ToWorker> {
 public:
  using Sender::Sender;
  void answer_all() {
    for (const auto& message : std::exchange(asked_, {})) {
      worker::FromWorker answer;
      answer.set_version(kWorkerProtocol);
      if (message.has_load()) {
        answer.mutable_loaded()->set_generation(message.load().generation());
        for (const auto& role : message.load().roles()) answer.mutable_loaded()->add_devices(role.device());
      } else if (message.has_ping()) {
        answer.mutable_pong()->set_number(message.ping().number());
        answer.mutable_pong()->set_wall_ns(wall_ns());
      } else if (message.has_run()) {
        auto& done = *answer.mutable_done();
        done.set_attempt(message.run().attempt());
        done.set_generation(message.run().generation());
        done.set_measured_ns(message.run().expected_ns());
        for (uint32_t row = 0; row < message.run().rows(); ++row) done.add_digests(row);
      } else if (message.has_transfer()) {
        answer.mutable_done()->set_attempt(message.transfer().attempt());
        answer.mutable_done()->set_generation(message.transfer().generation());
      } else {
        continue;
      }
      give(std::move(answer));
    }
  }
  void give(worker::FromWorker message) {
    if (!finished_) send(std::move(message));
  }
  void close() {
    if (!std::exchange(finished_, true)) stream_->finish(grpc::Status::OK);
  }

 private:
  void got(const worker::ToWorker& message) override { asked_.push_back(message); }
  void closed() override { close(); }
  std::vector<worker::ToWorker> asked_;
  bool finished_ = false;
};

class FakeWorkerCalls final : public WorkerCalled {
 public:
  void session(std::unique_ptr<CalledSession> stream) override {
    sessions_.push_back(std::make_unique<FakeWorker>(std::move(stream)));
    sessions_.back()->start();
  }
  void feature(std::unique_ptr<CalledFeature>) override { require(false); }
  FakeWorker* newest() { return sessions_.empty() ? nullptr : sessions_.back().get(); }

 private:
  std::vector<std::unique_ptr<FakeWorker>> sessions_;
};

struct Request final : LiveRequest {
  void settled() override { ++settlements; }
  std::string bytes;
  int settlements = 0;
};

// A real worker and what calls it.
class WorkerSide {
 public:
  explicit WorkerSide(const std::shared_ptr<SimulatedNetwork>& network)
      : network_(network), worker_(start("w")) {}
  ~WorkerSide() {
    end_map();
    if (server_) server_->close();
  }
  void to_session(worker::ToWorker message) {
    if (server_ && server_->ended()) server_ = nullptr;
    if (!server_) {
      server_ = std::make_unique<FakeServer>(network_->session(kWorker, {}));
      server_->start();
    }
    if (!other_ && message.transfer().address() == kOther) other_ = start("o");
    server_->give(std::move(message));
  }
  void to_feature(const worker::FeatureChunk& chunk) {
    if (!call_) {
      link_ = network_->feature_link(kWorker, {});
      call_ = link_->call();
      call_->start(1000 * kMillisecond);
    }
    if (!call_->write(chunk)) end_map();
  }
  void end_map() {
    if (!call_) return;
    const auto status = call_->finish();
    require(status.ok() || !status.error_message().empty());
    call_ = nullptr;
  }
  void close_session() {
    if (server_) server_->close();
  }

 private:
  std::unique_ptr<Worker> start(const std::string& name) {
    WorkerOptions options;
    options.name = options.host = name;
    options.devices = {{"front", 2}};
    options.network = network_;
    return Worker::start(options, bus_).value();
  }
  const std::shared_ptr<SimulatedNetwork> network_;
  NoBus bus_;
  const std::unique_ptr<Worker> worker_;
  std::unique_ptr<Worker> other_;  // null: no feature map has been sent there
  std::unique_ptr<FakeServer> server_;
  std::unique_ptr<FeatureLink> link_;
  std::unique_ptr<FeatureCall> call_;  // null: no map is on its way
};

// A real server's pool and data plane, and the worker that they call.
class ServerSide {
 public:
  explicit ServerSide(const std::shared_ptr<SimulatedNetwork>& network) {
    const auto& planned = planned_fleets()[0];
    listener_ = network->listen("fake", 0, {}, calls_).value();
    bus_ = in_process_bus({}).value();
    WorkerPoolOptions options;
    options.network = network;
    options.max_outbox_bytes = 1 << 20;
    pool_ = WorkerPool::create(bus_, options).value();
    const auto deployment = deploy(planned.fleet, planned.plan).value();
    auto devices = pool_->open(planned.fleet, deployment, 0, WaitFor::kThere, {});
    plane_ = LivePlane::create_remote(deployment, {}, std::move(devices)).value();
  }
  ~ServerSide() {
    for (const auto& w : pool_->workers()) {
      for (const double s :
           {w.heard_s, w.busy_s, w.round_trip_s, w.median_trip_s, w.clock_ahead_s, w.compute_s})
        require(std::isfinite(s));
      require(w.busy_s >= 0 && w.round_trip_s >= 0);
    }
    (void)plane_->counters();
    (void)plane_->drain(false);
    plane_ = nullptr;
    for (const auto& r : requests_) require(r->settlements == 1);
    pool_ = nullptr;
    bus_ = nullptr;
    listener_ = nullptr;
  }
  void announce(const std::string& value) { (void)bus_->announce("fake", value); }
  FakeWorker* worker() { return calls_.newest(); }
  void request(std::string bytes) {
    requests_.push_back(std::make_unique<Request>());
    auto& r = *requests_.back();
    r.bytes = std::move(bytes);
    r.deadline = live_now() + 600 * kMillisecond;
    r.payload = {{nullptr, reinterpret_cast<const std::byte*>(r.bytes.data()), r.bytes.size()}};
    plane_->submit(r);
  }

 private:
  FakeWorkerCalls calls_;
  std::unique_ptr<WorkerListener> listener_;
  std::shared_ptr<WorkerBus> bus_;
  std::shared_ptr<WorkerPool> pool_;
  std::unique_ptr<LivePlane> plane_;
  std::vector<std::unique_ptr<Request>> requests_;
};

class World {
 public:
  World() : network_(std::make_shared<SimulatedNetwork>()) {
    network_->watcher = &watcher_;
    network_->delays = {10'000, 100'000};
  }
  void take(const Frame& frame) {
    switch (frame.tag) {
      case 't':
        if (worker::ToWorker m; m.ParseFromString(frame.bytes)) worker_side().to_session(std::move(m));
        break;
      case 'f':
        if (worker::FeatureChunk m; m.ParseFromString(frame.bytes)) worker_side().to_feature(m);
        break;
      case 'w':
        if (worker::FromWorker m; server_side().worker() != nullptr && m.ParseFromString(frame.bytes))
          server_side().worker()->give(std::move(m));
        break;
      case 'h':
        if (auto* worker = server_side().worker()) worker->answer_all();
        break;
      case 'a':
        server_side().announce(frame.bytes);
        break;
      case 'r':
        server_side().request(frame.bytes);
        break;
      case 'd':
        sleep_ns(20 * kMillisecond * (frame.bytes.empty() ? 1 : static_cast<uint8_t>(frame.bytes[0])));
        break;
      case 'e':
        end();
        break;
      default:
        break;
    }
    sleep_ns(kMillisecond);
  }

 private:
  WorkerSide& worker_side() {
    if (!worker_side_) worker_side_ = std::make_unique<WorkerSide>(network_);
    return *worker_side_;
  }
  ServerSide& server_side() {
    if (!server_side_) server_side_ = std::make_unique<ServerSide>(network_);
    return *server_side_;
  }
  void end() {
    if (server_side_ && server_side_->worker() != nullptr) server_side_->worker()->close();
    if (!worker_side_) return;
    worker_side_->end_map();
    worker_side_->close_session();
  }

  NoWatcher watcher_;
  const std::shared_ptr<SimulatedNetwork> network_;
  std::unique_ptr<WorkerSide> worker_side_;
  std::unique_ptr<ServerSide> server_side_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)planned_fleets();  // by threads of the system
  const auto frames = frames_of({reinterpret_cast<const char*>(data), size});
  ThreadSimulationOptions options;
  options.seed = 1;
  options.switching = .05;
  options.most_threads = kMostThreads;
  options.most_steps = 1'000'000;
  Simulation simulation(options);
  const auto status = simulation.run([&frames] {
    World world;
    for (const auto& frame : frames) world.take(frame);
  });
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.error().to_string().c_str());
  require(status.ok());
  return 0;
}
