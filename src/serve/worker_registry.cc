// Announcements of workers to a server's in-process bus, by gRPC: both ends.
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>

#include "grpc_address.h"
#include "grpc_security.h"
#include "heddle/serve/bus.h"
#include "worker.grpc.pb.h"

namespace heddle {
namespace {

constexpr size_t kMostTold = 1000;

class RegistryCalls final : public worker::Registry::CallbackService {
 public:
  RegistryCalls(WorkerBus& bus, const WorkerSecurity& security, WorkerRegistry::Tell tell)
      : bus_(bus), security_(security), tell_(std::move(tell)) {}

  grpc::ServerUnaryReactor* Announce(grpc::CallbackServerContext* context,
                                     const worker::Announcement* request, worker::Lease* reply) override {
    if (!shows_token(*context, security_)) return refuse(context, request->key());
    return finish(context, bus_.announce(request->key(), request->value()), reply);
  }
  grpc::ServerUnaryReactor* Withdraw(grpc::CallbackServerContext* context, const worker::Withdrawal* request,
                                     worker::Lease* reply) override {
    if (!shows_token(*context, security_)) return refuse(context, request->key());
    return finish(context, bus_.withdraw(request->key()), reply);
  }

 private:
  grpc::ServerUnaryReactor* refuse(grpc::CallbackServerContext* context, const std::string& key) {
    const auto name = check_bus_key(key).ok() ? "worker '" + key + "'" : std::string("a worker");
    // Without the port, which changes from try to try.
    const auto peer = context->peer().substr(0, context->peer().rfind(':'));
    bool first = false;
    {
      const std::lock_guard lock(mutex_);
      first = told_.size() < kMostTold && told_.insert(name + peer).second;
    }
    if (first && tell_) tell_(name + " at " + peer + " is refused: it does not show the fleet's token");
    auto* const reactor = context->DefaultReactor();
    reactor->Finish(no_token());
    return reactor;
  }
  grpc::ServerUnaryReactor* finish(grpc::CallbackServerContext* context, const Status& status,
                                   worker::Lease* reply) {
    reply->set_seconds(bus_.lease_s());
    auto* const reactor = context->DefaultReactor();
    reactor->Finish(status.ok() ? grpc::Status::OK
                                : grpc::Status(status.error().code() == Code::kInvalidInput
                                                   ? grpc::StatusCode::INVALID_ARGUMENT
                                                   : grpc::StatusCode::RESOURCE_EXHAUSTED,
                                               status.error().message()));
    return reactor;
  }

  WorkerBus& bus_;
  const WorkerSecurity security_;
  const WorkerRegistry::Tell tell_;
  std::mutex mutex_;  // guards what follows
  std::set<std::string> told_;
};

class GrpcRegistry final : public WorkerRegistry {
 public:
  GrpcRegistry(WorkerBus& bus, const WorkerSecurity& security, Tell tell)
      : security_(security), calls_(bus, security, std::move(tell)) {}
  ~GrpcRegistry() override {
    if (server_) server_->Shutdown(std::chrono::system_clock::now());
  }

  Status open(const std::string& host, int port) {
    const auto address = grpc_address(host, port);
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(1 << 20);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    ask_silent_callers(builder);
    builder.AddListeningPort(address, listening_credentials(security_), &port_);
    builder.RegisterService(&calls_);
    server_ = builder.BuildAndStart();
    if (!server_ || port_ == 0)
      return Error(Code::kIo, "cannot listen on " + address + " for workers; is another server there?");
    return {};
  }

  int port() const override { return port_; }

 private:
  const WorkerSecurity security_;
  RegistryCalls calls_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
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
    return call(request, &worker::Registry::Stub::Announce);
  }
  Status withdraw(const std::string& key) override {
    worker::Withdrawal request;
    request.set_key(key);
    return call(request, &worker::Registry::Stub::Withdraw);
  }
  double lease_s() const override { return lease_s_; }

 private:
  template <class Request>
  Status call(const Request& request,
              grpc::Status (worker::Registry::Stub::*method)(grpc::ClientContext*, const Request&,
                                                             worker::Lease*)) {
    grpc::ClientContext context;
    show_token(context, security_);
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::milliseconds(static_cast<int64_t>(lease_s_ * 1e3)));
    worker::Lease reply;
    const auto status = (stub_.get()->*method)(&context, request, &reply);
    if (status.ok()) {
      if (reply.seconds() >= .1 && reply.seconds() <= 3600) lease_s_ = reply.seconds();
      return {};
    }
    if (may_be_cut(status)) stub_ = worker::Registry::NewStub(worker_channel(address_, security_));
    if (status.error_code() == grpc::StatusCode::INVALID_ARGUMENT)
      return Error(Code::kInvalidInput, status.error_message());
    if (status.error_code() == grpc::StatusCode::UNAUTHENTICATED)
      return Error(Code::kInvalidInput,
                   "the server at " + address_ + " refuses this worker: " + status.error_message());
    if (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED)
      return Error(Code::kInfeasible, status.error_message());
    return Error(Code::kIo, "no server takes workers at " + address_ + " (" + status.error_message() + ")");
  }

  const std::string address_;
  const WorkerSecurity security_;
  std::unique_ptr<worker::Registry::Stub> stub_;
  std::atomic<double> lease_s_{1};  // the server says which
};

}  // namespace

Result<std::unique_ptr<WorkerRegistry>> WorkerRegistry::start(const std::string& host, int port,
                                                              WorkerBus& bus, const WorkerSecurity& security,
                                                              Tell tell) {
  if (port < 0 || port > 65535)
    return Error(Code::kInvalidInput,
                 "port " + std::to_string(port) + ": expected 0 (any free one) to 65535");
  auto registry = std::make_unique<GrpcRegistry>(bus, security, std::move(tell));
  HEDDLE_RETURN_IF_ERROR(registry->open(host, port));
  return std::unique_ptr<WorkerRegistry>(std::move(registry));
}

Result<std::unique_ptr<Announcer>> registry_announcer(const std::string& address,
                                                      const WorkerSecurity& security) {
  HEDDLE_RETURN_IF_ERROR(check_grpc_address(address));
  return std::unique_ptr<Announcer>(std::make_unique<RegistryAnnouncer>(address, security));
}

}  // namespace heddle
