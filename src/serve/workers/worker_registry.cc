// Announcements of workers to a server's in-process bus, by gRPC: both ends.
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>

#include "heddle/serve/bus.h"
#include "protocol/grpc_ends.h"
#include "worker.grpc.pb.h"
#include "worker_proof.h"

namespace heddle {
namespace {

constexpr size_t kMostNamed = 1000;

// The fields that a proof covers.
std::vector<std::string_view> announced(const worker::Announcement& a) {
  return {"announce", a.challenge(), a.key(), a.value()};
}
std::vector<std::string_view> withdrawn(const worker::Withdrawal& w) {
  return {"withdraw", w.challenge(), w.key()};
}

class RegistryCalls final : public worker::Registry::CallbackService {
 public:
  RegistryCalls(WorkerBus& bus, const WorkerSecurity& security, WorkerRegistry::Report report)
      : bus_(bus), security_(security), report_(std::move(report)) {}

  grpc::ServerUnaryReactor* Ask(grpc::CallbackServerContext* context, const worker::Question*,
                                worker::Challenge* reply) override {
    reply->set_nonce(challenges_.now());
    return grpc_finish(*context, grpc::Status::OK);
  }
  grpc::ServerUnaryReactor* Announce(grpc::CallbackServerContext* context,
                                     const worker::Announcement* request, worker::Lease* reply) override {
    if (const auto why = check(*request, announced(*request)); !why.ok())
      return refuse(context, request->key(), why);
    return finish(context, bus_.announce(request->key(), request->value()), reply);
  }
  grpc::ServerUnaryReactor* Withdraw(grpc::CallbackServerContext* context, const worker::Withdrawal* request,
                                     worker::Lease* reply) override {
    if (const auto why = check(*request, withdrawn(*request)); !why.ok())
      return refuse(context, request->key(), why);
    return finish(context, bus_.withdraw(request->key()), reply);
  }

 private:
  // Refuses requests without a proof of the token that answers a recent challenge.
  template <class Request>
  grpc::Status check(const Request& request, const std::vector<std::string_view>& fields) const {
    if (security_.token.empty()) return grpc::Status::OK;
    if (!is_proof(request.proof(), security_.token, fields)) return no_token();
    if (challenges_.is_valid(request.challenge())) return grpc::Status::OK;
    return {grpc::StatusCode::FAILED_PRECONDITION, "the challenge has expired"};
  }
  grpc::ServerUnaryReactor* refuse(grpc::CallbackServerContext* context, const std::string& key,
                                   const grpc::Status& why) {
    if (why.error_code() == grpc::StatusCode::UNAUTHENTICATED) log_refusal(*context, key);
    return grpc_finish(*context, why);
  }
  // Once for each name and host.
  void log_refusal(const grpc::CallbackServerContext& context, const std::string& key) {
    const auto name = check_bus_key(key).ok() ? "worker '" + key + "'" : std::string("a worker");
    // Without the port, which changes from try to try.
    const auto peer = context.peer().substr(0, context.peer().rfind(':'));
    bool first = false;
    {
      const std::lock_guard lock(mutex_);
      first = named_.size() < kMostNamed && named_.insert(name + peer).second;
    }
    if (first && report_)
      report_(name + " at " + peer + " is refused: it does not prove that it knows the fleet's token");
  }
  grpc::ServerUnaryReactor* finish(grpc::CallbackServerContext* context, const Status& status,
                                   worker::Lease* reply) {
    reply->set_seconds(bus_.lease_s());
    reply->set_challenge(challenges_.now());
    if (status.ok()) return grpc_finish(*context, grpc::Status::OK);
    const auto code = status.error().code() == Code::kInvalidInput ? grpc::StatusCode::INVALID_ARGUMENT
                                                                   : grpc::StatusCode::RESOURCE_EXHAUSTED;
    return grpc_finish(*context, {code, status.error().message()});
  }

  WorkerBus& bus_;
  const WorkerSecurity security_;
  const WorkerRegistry::Report report_;
  const TimedChallenges challenges_;
  std::mutex mutex_;  // guards what follows
  std::set<std::string> named_;
};

class GrpcRegistry final : public WorkerRegistry {
 public:
  GrpcRegistry(WorkerBus& bus, const WorkerSecurity& security, Report report)
      : security_(security), calls_(bus, security, std::move(report)) {}
  ~GrpcRegistry() override {
    if (listener_.server) listener_.server->Shutdown(std::chrono::system_clock::now());
  }

  Status open(const std::string& host, int port) {
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(1 << 20);
    ask_silent_callers(builder);
    HEDDLE_ASSIGN_OR_RETURN(listener_, grpc_listen(builder, host, port, security_.tls, calls_, "workers"));
    return {};
  }

  int port() const override { return listener_.port; }

 private:
  const WorkerSecurity security_;
  RegistryCalls calls_;
  GrpcListener listener_;
};

class RegistryAnnouncer final : public Announcer {
 public:
  RegistryAnnouncer(const std::string& address, const WorkerSecurity& security)
      : address_(address),
        security_(security),
        stub_(worker::Registry::NewStub(worker_channel(address, security))) {}

  Status announce(const std::string& key, const std::string& value) override {
    worker::Announcement request;
    request.set_key(key);
    request.set_value(value);
    return call(request, &announced, &worker::Registry::Stub::Announce);
  }
  Status withdraw(const std::string& key) override {
    worker::Withdrawal request;
    request.set_key(key);
    return call(request, &withdrawn, &worker::Registry::Stub::Withdraw);
  }
  double lease_s() const override { return lease_s_; }

 private:
  template <class Request>
  Status call(Request& request, std::vector<std::string_view> (*fields)(const Request&),
              grpc::Status (worker::Registry::Stub::*method)(grpc::ClientContext*, const Request&,
                                                             worker::Lease*)) {
    const auto until =
        std::chrono::system_clock::now() + std::chrono::milliseconds(static_cast<int64_t>(lease_s_ * 1e3));
    worker::Lease reply;
    grpc::Status status;
    for (int tries = 0; tries < 2; ++tries) {
      if (!security_.token.empty()) {
        if (challenge_.empty()) status = ask(until);
        if (challenge_.empty()) break;
        request.set_challenge(challenge_);
        request.set_proof(proof_of(security_.token, fields(request)));
      }
      grpc::ClientContext context;
      context.set_deadline(until);
      status = (stub_.get()->*method)(&context, request, &reply);
      challenge_ = reply.challenge();
      // The server has started again, or the worker was stopped for long.
      if (status.error_code() != grpc::StatusCode::FAILED_PRECONDITION) break;
    }
    if (status.ok()) {
      if (reply.seconds() >= .1 && reply.seconds() <= 3600) lease_s_ = reply.seconds();
      return {};
    }
    if (may_be_cut(status)) stub_ = worker::Registry::NewStub(worker_channel(address_, security_));
    if (status.error_code() == grpc::StatusCode::INVALID_ARGUMENT)
      return invalid_input(status.error_message());
    if (status.error_code() == grpc::StatusCode::UNAUTHENTICATED)
      return invalid_input("the server at " + address_ + " refuses this worker: " + status.error_message());
    if (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED)
      return infeasible(status.error_message());
    return io_error("no server takes workers at " + address_ + " (" + status.error_message() + ")");
  }

  grpc::Status ask(std::chrono::system_clock::time_point until) {
    grpc::ClientContext context;
    context.set_deadline(until);
    worker::Challenge challenge;
    const auto status = stub_->Ask(&context, {}, &challenge);
    challenge_ = challenge.nonce();
    return status;
  }

  const std::string address_;
  const WorkerSecurity security_;
  std::string challenge_;  // of the server, for the next proof; empty: to be asked for
  std::unique_ptr<worker::Registry::Stub> stub_;
  std::atomic<double> lease_s_{1};  // the server says which
};

}  // namespace

Result<std::unique_ptr<WorkerRegistry>> WorkerRegistry::start(const std::string& host, int port,
                                                              WorkerBus& bus, const WorkerSecurity& security,
                                                              Report report) {
  auto registry = std::make_unique<GrpcRegistry>(bus, security, std::move(report));
  HEDDLE_RETURN_IF_ERROR(registry->open(host, port));
  return std::unique_ptr<WorkerRegistry>(std::move(registry));
}

Result<std::unique_ptr<Announcer>> registry_announcer(const std::string& address,
                                                      const WorkerSecurity& security) {
  HEDDLE_RETURN_IF_ERROR(check_grpc_address(address));
  return std::unique_ptr<Announcer>(std::make_unique<RegistryAnnouncer>(address, security));
}

}  // namespace heddle
