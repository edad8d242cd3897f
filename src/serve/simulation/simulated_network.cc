#include "simulated_network.h"

#include <algorithm>
#include <type_traits>

namespace heddle {
namespace {

void reset_pipe(SimulatedNetwork& network, SimulatedPipe& pipe, int dead_end) {
  SimulatedPacket reset;
  reset.kind = SimulatedPacket::Kind::kReset;
  reset.status = {grpc::StatusCode::UNAVAILABLE, "the connection broke"};
  network.push(pipe, 1 - dead_end, std::move(reset));
  pipe.dead[dead_end] = true;
  Simulation::current().wake(&pipe.to[dead_end]);
}

// One end of a stream, kept by its two threads and the stream's owner. One thread reads and reports the end, the
// other writes.
template <class Sent, class Received>
struct StreamEnd : std::enable_shared_from_this<StreamEnd<Sent, Received>> {
  StreamEnd(SimulatedNetwork& in, std::shared_ptr<SimulatedPipe> on, int which)
      : network(in), pipe(std::move(on)), end(which) {}

  SimulatedNetwork& network;
  const std::shared_ptr<SimulatedPipe> pipe;
  const int end;
  StreamListener* listener = nullptr;
  Received* into = nullptr;
  const Sent* from = nullptr;
  bool over = false;       // by this end: cancelled or finished
  bool broken = false;     // by the other end, or between them
  bool reporting = false;  // a write
  bool done = false;
  grpc::Status status;
  std::shared_ptr<SimulatedNetwork::Listening> listening;  // of a called end
  std::string address;                                     // of a caller

  bool dead() const { return pipe->dead[end]; }
  const void* place() const { return &pipe->to[end]; }

  void begin_read(Received* to) {
    into = to;
    Simulation::current().wake(place());
  }
  void begin_write(const Sent* message) {
    from = message;
    Simulation::current().wake(place());
  }

  void begin() {
    auto& simulation = Simulation::current();
    simulation.start(simulation.process(), [self = this->shared_from_this()] { self->read_all(); });
    simulation.start(simulation.process(), [self = this->shared_from_this()] { self->write_all(); });
  }

  void read_all() {
    auto& simulation = Simulation::current();
    if (end == 1) connect();
    for (;;) {
      if (dead() && !broken) {
        broken = true;
        status = {grpc::StatusCode::UNAVAILABLE, "the connection broke"};
      }
      if (into != nullptr) {
        if (over || broken) {
          into = nullptr;
          listener->read_done(false);
          continue;
        }
        if (network.next_at(*pipe, end) <= simulation.now()) {
          take(network.pop(*pipe, end));
          continue;
        }
      } else if (over && from == nullptr && !reporting) {
        break;
      }
      simulation.wait(place(), into != nullptr && !over ? network.next_at(*pipe, end) : INT64_MAX);
    }
    done = true;
    simulation.wake(place());
    listener->stream_ended(status);
    if constexpr (std::is_same_v<Sent, worker::ToWorker>) network.watcher->server_is_told(pipe->id);
    if (listening) {
      --listening->open;
      simulation.wake(listening.get());
    }
  }

  void connect();

  void take(const SimulatedPacket& packet) {
    using Kind = SimulatedPacket::Kind;
    if (packet.kind == Kind::kMessage) {
      auto* const to = std::exchange(into, nullptr);
      to->ParseFromString(packet.bytes);
      watch_read(*to);
      network.message_read();
      listener->read_done(true);
      return;
    }
    if (packet.kind == Kind::kClose) {  // of a feature map: nothing more comes, and the status is waited for
      into = nullptr;
      listener->read_done(false);
      return;
    }
    broken = true;
    status = packet.status;
    Simulation::current().wake(place());
  }

  void write_all() {
    auto& simulation = Simulation::current();
    while (!done) {
      if (from == nullptr) {
        simulation.wait(place(), INT64_MAX);
        continue;
      }
      bool ok = !over && !broken && !dead();
      if (ok) {
        SimulatedPacket packet;
        packet.bytes = from->SerializeAsString();
        watch_write(*from);
        network.push(*pipe, 1 - end, std::move(packet));
        constexpr size_t kWindow = 64 << 10;  // what is on its way at a time
        while (pipe->to[1 - end].bytes > kWindow && !over && !broken && !dead())
          simulation.wait(place(), simulation.now() + 1'000'000);
        ok = !over && !broken && !dead();
      }
      from = nullptr;
      reporting = true;
      listener->write_done(ok);
      reporting = false;
      simulation.wake(place());
    }
  }

  void watch_read(const worker::ToWorker& m) { network.watcher->worker_gets(pipe->id, m); }
  void watch_read(const worker::FromWorker& m) { network.watcher->server_gets(pipe->id, m); }
  void watch_read(const worker::FeatureChunk&) {}
  void watch_write(const worker::ToWorker& m) { network.watcher->server_sends(pipe->id, m); }
  void watch_write(const worker::FromWorker& m) { network.watcher->worker_sends(pipe->id, m); }
  void watch_write(const worker::FeatureReply&) {}
};

using SessionCaller = StreamEnd<worker::ToWorker, worker::FromWorker>;

class SimulatedSessionCall final : public SessionCall {
 public:
  SimulatedSessionCall(SimulatedNetwork& network, const std::string& address)
      : end_(std::make_shared<SessionCaller>(network, network.new_pipe(), 1)) {
    end_->address = address;
    network.watcher->server_calls(end_->pipe->id, address);
  }
  void start(StreamListener& listener) override {
    end_->listener = &listener;
    end_->begin();
  }
  void read(worker::FromWorker* into) override { end_->begin_read(into); }
  void write(const worker::ToWorker* message) override { end_->begin_write(message); }
  void cancel() override {
    auto& e = *end_;
    if (!e.broken) {
      SimulatedPacket reset;
      reset.kind = SimulatedPacket::Kind::kReset;
      reset.status = {grpc::StatusCode::CANCELLED, "the caller has ended the call"};
      e.status = reset.status;
      e.network.push(*e.pipe, 0, std::move(reset));
    }
    e.over = true;
    e.network.watcher->server_ends(e.pipe->id);
    Simulation::current().wake(e.place());
  }

 private:
  const std::shared_ptr<SessionCaller> end_;
};

template <class Sent, class Received>
class SimulatedCalled final : public CalledStream<Sent, Received> {
 public:
  explicit SimulatedCalled(std::shared_ptr<StreamEnd<Sent, Received>> end) : end_(std::move(end)) {}
  void start(StreamListener& listener) override {
    end_->listener = &listener;
    end_->begin();
  }
  void read(Received* into) override { end_->begin_read(into); }
  void write(const Sent* message) override { end_->begin_write(message); }
  void finish(const grpc::Status& status, const Sent* last) override {
    auto& e = *end_;
    if (last != nullptr) {
      SimulatedPacket packet;
      packet.bytes = last->SerializeAsString();
      e.network.push(*e.pipe, 1, std::move(packet));
    }
    SimulatedPacket packet;
    packet.kind = SimulatedPacket::Kind::kStatus;
    packet.status = status;
    e.network.push(*e.pipe, 1, std::move(packet));
    if constexpr (std::is_same_v<Sent, worker::FromWorker>) e.network.watcher->worker_ends(e.pipe->id);
    e.over = true;
    Simulation::current().wake(e.place());
  }

 private:
  const std::shared_ptr<StreamEnd<Sent, Received>> end_;
};

template <class Sent, class Received>
std::unique_ptr<CalledStream<Sent, Received>> called_end(
    SimulatedNetwork& network, const std::shared_ptr<SimulatedPipe>& pipe,
    const std::shared_ptr<SimulatedNetwork::Listening>& listening) {
  auto end = std::make_shared<StreamEnd<Sent, Received>>(network, pipe, 0);
  end->listening = listening;
  return std::make_unique<SimulatedCalled<Sent, Received>>(std::move(end));
}

constexpr int64_t kConnectPatience = 2'000'000'000;

// Has the one that listens there take the call. False: nobody does.
template <class Take>
bool call_up(SimulatedNetwork& network, const std::shared_ptr<SimulatedPipe>& pipe,
             const std::string& address, int64_t patience, const Take& take) {
  const auto listening = network.connect(*pipe, address, patience);
  if (!listening) return false;
  ++listening->open;
  listening->pipes.push_back(pipe);
  Simulation::current().start(listening->process,
                              [&network, pipe, listening, take] { take(network, pipe, listening); });
  return true;
}

template <class Sent, class Received>
void StreamEnd<Sent, Received>::connect() {
  const bool taken = call_up(
      network, pipe, address, kConnectPatience,
      [](SimulatedNetwork& in, const auto& on, const auto& listening) {
        listening->called->session(called_end<worker::FromWorker, worker::ToWorker>(in, on, listening));
      });
  if (taken) return;
  broken = true;
  status = {grpc::StatusCode::UNAVAILABLE, "nobody listens there"};
}

class SimulatedFeatureCall final : public FeatureCall {
 public:
  SimulatedFeatureCall(SimulatedNetwork& network, const std::string& address)
      : network_(network), address_(address), pipe_(network.new_pipe()) {}
  ~SimulatedFeatureCall() override { break_off(); }

  void start(TimeNs patience) override {
    deadline_ = Simulation::current().now() + patience;
    const bool taken =
        call_up(network_, pipe_, address_, std::min<int64_t>(patience, kConnectPatience),
                [](SimulatedNetwork& in, const auto& on, const auto& listening) {
                  listening->called->feature(
                      called_end<worker::FeatureReply, worker::FeatureChunk>(in, on, listening));
                });
    if (!taken) end_by({grpc::StatusCode::UNAVAILABLE, "nobody listens there"});
  }
  bool write(const worker::FeatureChunk& chunk) override {
    if (!going_on()) return false;
    SimulatedPacket packet;
    packet.bytes = chunk.SerializeAsString();
    network_.push(*pipe_, 0, std::move(packet));
    return true;
  }
  bool read(worker::FeatureReply& into) override {
    auto& simulation = Simulation::current();
    while (going_on()) {
      const int64_t next = network_.next_at(*pipe_, 1);
      if (next > simulation.now()) {
        simulation.wait(&pipe_->to[1], std::min(next, deadline_));
        continue;
      }
      const auto packet = network_.pop(*pipe_, 1);
      if (packet.kind == SimulatedPacket::Kind::kMessage) return into.ParseFromString(packet.bytes);
      end_by(packet.status);
    }
    return false;
  }
  grpc::Status finish() override {
    if (going_on()) {
      SimulatedPacket close;
      close.kind = SimulatedPacket::Kind::kClose;
      network_.push(*pipe_, 0, std::move(close));
    }
    worker::FeatureReply rest;
    while (read(rest)) {
    }
    return status_;
  }
  void cancel() override {
    if (!ended_) break_off();
    end_by({grpc::StatusCode::CANCELLED, "the caller has ended the call"});
    Simulation::current().wake(&pipe_->to[1]);
  }

 private:
  void end_by(const grpc::Status& status) {
    if (!ended_) status_ = status;
    ended_ = true;
  }
  bool going_on() {
    if (!ended_ && pipe_->dead[1]) end_by({grpc::StatusCode::UNAVAILABLE, "the connection broke"});
    if (!ended_ && Simulation::current().now() >= deadline_) {
      break_off();
      end_by({grpc::StatusCode::DEADLINE_EXCEEDED, "the deadline has passed"});
    }
    return !ended_;
  }
  void break_off() {
    if (!pipe_->connected || pipe_->dead[1]) return;
    SimulatedPacket reset;
    reset.kind = SimulatedPacket::Kind::kReset;
    reset.status = {grpc::StatusCode::CANCELLED, "the caller has ended the call"};
    network_.push(*pipe_, 0, std::move(reset));
    pipe_->dead[1] = true;
  }

  SimulatedNetwork& network_;
  const std::string address_;
  const std::shared_ptr<SimulatedPipe> pipe_;
  int64_t deadline_ = 0;
  bool ended_ = false;
  grpc::Status status_;
};

class SimulatedFeatureLink final : public FeatureLink {
 public:
  SimulatedFeatureLink(SimulatedNetwork& network, std::string address)
      : network_(network), address_(std::move(address)) {}
  std::unique_ptr<FeatureCall> call() override {
    return std::make_unique<SimulatedFeatureCall>(network_, address_);
  }
  void reconnect() override {}

 private:
  SimulatedNetwork& network_;
  const std::string address_;
};

class SimulatedListener final : public WorkerListener {
 public:
  SimulatedListener(SimulatedNetwork& network, std::string address, int port,
                    std::shared_ptr<SimulatedNetwork::Listening> listening)
      : network_(network), address_(std::move(address)), port_(port), listening_(std::move(listening)) {}
  ~SimulatedListener() override { stop(); }
  int port() const override { return port_; }
  void stop() override {
    network_.forget(address_, listening_);
    auto& simulation = Simulation::current();
    while (listening_->open > 0) {
      for (const auto& pipe : listening_->pipes)
        if (!pipe->dead[0]) reset_pipe(network_, *pipe, 0);
      listening_->pipes.clear();
      simulation.wait(listening_.get(), INT64_MAX);
    }
  }

 private:
  SimulatedNetwork& network_;
  const std::string address_;
  const int port_;
  const std::shared_ptr<SimulatedNetwork::Listening> listening_;
};

}  // namespace

void SimulatedNetwork::break_connections(Simulation::Process a, Simulation::Process b) {
  for (const auto& weak : pipes_) {
    const auto pipe = weak.lock();
    if (!pipe || !pipe->connected) continue;
    const auto& p = pipe->process;
    if ((p[0] != a || p[1] != b) && (p[0] != b || p[1] != a)) continue;
    if (!pipe->dead[0] && !pipe->dead[1]) reset_pipe(*this, *pipe, Simulation::current().random().chance(.5));
  }
}

void SimulatedNetwork::crash(Simulation::Process process, bool with_host) {
  std::erase_if(listening_, [process](const auto& entry) { return entry.second->process == process; });
  for (const auto& weak : pipes_) {
    const auto pipe = weak.lock();
    if (!pipe) continue;
    for (const int end : {0, 1})
      if (pipe->process[end] == process && !pipe->dead[end] && (end == 1 || pipe->connected)) {
        pipe->dead[end] = with_host;
        if (!with_host) reset_pipe(*this, *pipe, end);
      }
  }
}

std::unique_ptr<SessionCall> SimulatedNetwork::session(const std::string& address, const WorkerSecurity&) {
  return std::make_unique<SimulatedSessionCall>(*this, address);
}

std::unique_ptr<FeatureLink> SimulatedNetwork::feature_link(const std::string& address,
                                                            const WorkerSecurity&) {
  return std::make_unique<SimulatedFeatureLink>(*this, address);
}

Result<std::unique_ptr<WorkerListener>> SimulatedNetwork::listen(const std::string& host, int port,
                                                                 const WorkerSecurity&,
                                                                 WorkerCalled& called) {
  const int at = port == 0 ? 1 : port;
  const auto address = host + ":" + std::to_string(at);
  auto& listening = listening_[address];
  if (listening) return io_error("cannot listen on " + address + ": another process listens there");
  listening = std::make_shared<Listening>();
  listening->process = Simulation::current().process();
  listening->called = &called;
  return std::unique_ptr<WorkerListener>(std::make_unique<SimulatedListener>(*this, address, at, listening));
}

}  // namespace heddle
