#include "heddle/serve/worker.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "heddle/base/json.h"
#include "heddle/fleet/fleet.h"
#include "heddle/serve/live_plane.h"
#include "protocol/grpc_ends.h"
#include "worker_session.h"

namespace heddle {
namespace {

constexpr int64_t kDrainLook_ns = 2'000'000;

// A feature map that comes from another worker.
class FeatureReader final : public StreamListener {
 public:
  FeatureReader(WorkerResources& resources, std::unique_ptr<CalledFeature> stream)
      : stream_(std::move(stream)),
        resources_(resources),
        proof_({resources.token, kFeatureCall, resources.address}) {
    stream_->start(*this);
    stream_->read(&chunk_);
  }

  void read_done(bool ok) override {
    if (!ok) return complete();
    if (!std::exchange(begun_, true) && !works_with(chunk_.version()))
      return stream_->finish(
          {grpc::StatusCode::UNIMPLEMENTED, version_refusal("the sender", chunk_.version(), "the receiver")});
    if (chunk_.has_hello() && !challenged_) {
      challenged_ = true;
      *reply_.mutable_challenge() = proof_.answer(chunk_.hello());
      return stream_->write(&reply_);
    }
    if (!proven_ && !proof_.accepts(chunk_.proof())) return stream_->finish(no_token());
    proven_ = true;
    if (!intake_.take(chunk_))
      return refuse("the feature map is too large, or differs from what was announced");
    stream_->read(&chunk_);
  }
  void write_done(bool ok) override {
    if (!ok) return refuse("the sender disconnected");
    stream_->read(&chunk_);
  }
  void stream_ended(const grpc::Status&) override { delete this; }

 private:
  void refuse(const char* why) { stream_->finish({grpc::StatusCode::INVALID_ARGUMENT, why}); }
  void complete() {
    if (!intake_.complete()) return refuse("the feature map ends early");
    ++resources_.maps_received;
    resources_.map_bytes_received += intake_.bytes();
    reply_.Clear();
    reply_.set_bytes(intake_.bytes());
    resources_.maps.put(intake_.batch(), intake_.device(), intake_.map());
    stream_->finish(grpc::Status::OK, &reply_);
  }

  const std::unique_ptr<CalledFeature> stream_;
  WorkerResources& resources_;
  CalledProof proof_;
  bool begun_ = false, challenged_ = false, proven_ = false;
  worker::FeatureReply reply_;
  worker::FeatureChunk chunk_;
  FeatureIntake intake_;
};

class WorkerCalls final : public WorkerCalled {
 public:
  explicit WorkerCalls(WorkerResources& resources) : resources_(resources) {}

  void session(std::unique_ptr<CalledSession> stream) override {
    const auto session = std::make_shared<WorkerSession>(resources_, std::move(stream));
    session->admit = [this](WorkerSession& s) { return admit(s); };
    session->begin();
  }
  // It destroys itself when its stream has ended.
  void feature(std::unique_ptr<CalledFeature> stream) override {
    new FeatureReader(resources_, std::move(stream));
  }

  std::shared_ptr<WorkerSession> current() const {
    const std::lock_guard lock(mutex_);
    return current_;
  }

 private:
  // The newest server has the worker. Whatever runs for the one before is forgotten. A server that was replaced as the
  // leader comes too late, even when the new one has no session yet.
  std::string admit(WorkerSession& next) {
    // One after the other: what an older one clears is nothing of a newer one's.
    const std::lock_guard one(admit_mutex_);
    std::shared_ptr<WorkerSession> old;
    {
      const std::lock_guard lock(mutex_);
      const uint64_t term = term_of(next.epoch());
      if (term < newest_term_) return replaced(term);
      if (current_ && current_->open() && !current_->is_silent() && current_->epoch() >= next.epoch())
        return "another server uses this worker";
      newest_term_ = term;
      old = std::move(current_);
      current_ = next.shared_from_this();
      next.number = ++resources_.sessions;
    }
    if (old) old->end({grpc::StatusCode::ABORTED, "a newer session has this worker"});
    // A run that the old session has just read begins no more.
    resources_.devices.give_to(next.number);
    resources_.maps.clear();
    resources_.sender.forget_all();
    next.opened();
    return {};
  }

  std::string replaced(uint64_t term) const {
    const auto newest = "another server has led this worker in term " + std::to_string(newest_term_);
    return term == 0
               ? newest +
                     ", and this one has no term; start it with --state of that server, or the worker anew"
               : newest + ", and this one leads in term " + std::to_string(term);
  }

  WorkerResources& resources_;
  Mutex admit_mutex_;    // taken before the other
  mutable Mutex mutex_;  // guards what follows
  std::shared_ptr<WorkerSession> current_;
  uint64_t newest_term_ = 0;  // of all sessions so far
};

class WorkerProcess final : public Worker {
 public:
  WorkerProcess(const WorkerOptions& options, Announcer& announcer)
      : options_(options), announcer_(announcer), resources_(options), calls_(resources_) {}

  ~WorkerProcess() override {
    {
      const std::lock_guard lock(mutex_);
      quit_ = true;
    }
    changed_.notify_all();
    if (announcing_.joinable()) {
      announcing_.join();
      // A bus that is not there needs no telling.
      (void)announcer_.withdraw(options_.name).ok();
    }
    if (listener_) {
      if (const auto session = calls_.current())
        session->end({grpc::StatusCode::UNAVAILABLE, "the worker is stopping"});
      listener_->stop();
    }
    resources_.devices.give_to(UINT64_MAX);
    resources_.sender.forget_all();
  }

  Status open() {
    HEDDLE_ASSIGN_OR_RETURN(
        listener_, resources_.network->listen(options_.host, options_.port, options_.security, calls_));
    WorkerEntry entry;
    entry.name = options_.name;
    entry.address = resources_.address =
        host_port(options_.advertise.empty() ? options_.host : options_.advertise, listener_->port());
    entry.pid = ::getpid();
    entry.incarnation = std::to_string(entry.pid) + "-" + std::to_string(wall_ns());
    entry.devices = options_.devices;
    announcing_ = Thread([this, text = worker_entry_text(entry)] { announce(text); });
    return {};
  }

  // Maps that have come for runs here are not waited for: those runs are refused.
  void drain(double seconds) override {
    const auto told = calls_.current();
    if (told) told->leave();
    const TimeNs until = live_now() + ns_from_us(seconds * 1e6);
    while (live_now() < until) {
      const auto session = calls_.current();
      // A server that follows the one that was told gets refusals.
      if (session != told) resources_.leaving = true;
      if (!session || !session->open()) break;
      if (resources_.leaving && session->idle() && !resources_.maps.has_made()) break;
      sleep_ns(kDrainLook_ns);
    }
    resources_.leaving = true;
  }

  int port() const override { return listener_->port(); }

  WorkerCounters counters() const override {
    WorkerCounters c;
    c.sessions = resources_.sessions;
    c.runs = resources_.runs;
    c.rows = resources_.rows;
    c.maps_sent = resources_.maps_sent;
    c.maps_received = resources_.maps_received;
    c.map_bytes_received = resources_.map_bytes_received;
    c.maps_kept = resources_.maps.size();
    const auto timed = resources_.devices.counts();
    c.timed_runs = timed.runs;
    c.session_runs = timed.of_owner;
    c.stray_runs = timed.strays;
    const auto session = calls_.current();
    c.connected = session && session->open();
    if (session) session->add_counts(c);
    const std::lock_guard lock(mutex_);
    c.announcement_error = announcement_error_;
    return c;
  }

 private:
  void announce(const std::string& text) {
    std::unique_lock lock(mutex_);
    while (!quit_) {
      lock.unlock();
      const auto status = announcer_.announce(options_.name, text);
      const auto session = calls_.current();
      if (session && session->open() && session->is_silent())
        session->end({grpc::StatusCode::DEADLINE_EXCEEDED, "the server was silent for two leases"});
      lock.lock();
      announcement_error_ = status.ok() ? "" : status.error().to_string();
      if (!quit_) changed_.wait_for(lock, ns_from_us(announcer_.lease_s() / 4 * 1e6));
    }
  }

  const WorkerOptions options_;
  Announcer& announcer_;
  WorkerResources resources_;
  WorkerCalls calls_;
  std::unique_ptr<WorkerListener> listener_;
  mutable Mutex mutex_;  // guards what follows
  Condition changed_;
  std::string announcement_error_;
  bool quit_ = false;
  Thread announcing_;
};

}  // namespace

std::string worker_entry_text(const WorkerEntry& entry) {
  Json devices = Json::object();
  for (const auto& [name, count] : entry.devices) devices[name] = count;
  return json_text({{"address", entry.address},
                    {"incarnation", entry.incarnation},
                    {"pid", entry.pid},
                    {"devices", std::move(devices)}});
}

Result<WorkerEntry> worker_entry_from_text(const std::string& name, const std::string& text) {
  const auto context = "worker '" + name + "'";
  auto json = parse_json(text, {8, 1 << 20});
  if (!json.ok()) return std::move(json).error().with_context(context);
  const JsonCursor at(*json, context);
  HEDDLE_RETURN_IF_ERROR(at.check_keys({"address", "incarnation", "pid", "devices"}));
  WorkerEntry entry;
  entry.name = name;
  HEDDLE_ASSIGN_OR_RETURN(entry.address, at.string_or("address", ""));
  HEDDLE_RETURN_IF_ERROR(check_grpc_address(entry.address));
  HEDDLE_ASSIGN_OR_RETURN(entry.incarnation, at.string_or("incarnation", ""));
  HEDDLE_ASSIGN_OR_RETURN(entry.pid, at.int_or("pid", 0, 0, INT32_MAX));
  HEDDLE_ASSIGN_OR_RETURN(const auto devices, at.at("devices"));
  if (!devices.value().is_object() || devices.value().size() > static_cast<size_t>(kMaxFleetClasses))
    return devices.error("expected an object of numbers of devices by class");
  for (const auto& [c, number] : devices.value().items()) {
    HEDDLE_ASSIGN_OR_RETURN(entry.devices[c],
                            JsonCursor(number, devices.path() + "." + c).as_int(0, kMaxFleetDevices));
  }
  return entry;
}

Result<std::unique_ptr<Worker>> Worker::start(const WorkerOptions& options, Announcer& announcer) {
  HEDDLE_RETURN_IF_ERROR(check_bus_key(options.name));
  if (!(options.slowdown >= .01 && options.slowdown <= 1000))
    return invalid_input("a slowdown of " + std::to_string(options.slowdown) + ": expected 0.01 to 1000");
  int64_t devices = 0;
  for (const auto& [name, count] : options.devices) {
    if (count < 0 || count > kMaxFleetDevices)
      return invalid_input("class '" + name + "': " + std::to_string(count) + " devices");
    devices += count;
  }
  if (devices == 0 || options.devices.size() > static_cast<size_t>(kMaxFleetClasses))
    return invalid_input("a worker has devices of 1 to " + std::to_string(kMaxFleetClasses) +
                         " classes, given as CLASS=N");
  auto worker = std::make_unique<WorkerProcess>(options, announcer);
  HEDDLE_RETURN_IF_ERROR(worker->open());
  return std::unique_ptr<Worker>(std::move(worker));
}

}  // namespace heddle
