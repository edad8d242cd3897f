#include <chrono>
#include <utility>

#include "protocol/grpc_ends.h"
#include "worker.grpc.pb.h"
#include "worker_network.h"

namespace heddle {
namespace {

class GrpcSessionCall final : public SessionCall,
                              public grpc::ClientBidiReactor<worker::ToWorker, worker::FromWorker> {
 public:
  GrpcSessionCall(const std::string& address, const WorkerSecurity& security)
      : stub_(worker::Worker::NewStub(worker_channel(address, security))) {}

  void start(StreamListener& listener) override {
    listener_ = &listener;
    stub_->async()->Session(&context_, this);
    // Writes come from other threads than the reactor's own: the call stays until the hold is given back.
    AddHold();
    StartCall();
  }
  void read(worker::FromWorker* into) override { StartRead(into); }
  void write(const worker::ToWorker* message) override { StartWrite(message); }
  void cancel() override {
    context_.TryCancel();
    RemoveHold();
  }

  void OnReadDone(bool ok) override { listener_->read_done(ok); }
  void OnWriteDone(bool ok) override { listener_->write_done(ok); }
  void OnDone(const grpc::Status& status) override { listener_->stream_ended(status); }

 private:
  const std::unique_ptr<worker::Worker::Stub> stub_;
  grpc::ClientContext context_;
  StreamListener* listener_ = nullptr;
};

template <class Sent, class Received>
class GrpcCalled final : public CalledStream<Sent, Received>, public grpc::ServerBidiReactor<Received, Sent> {
 public:
  void start(StreamListener& listener) override { listener_ = &listener; }
  void read(Received* into) override { this->StartRead(into); }
  void write(const Sent* message) override { this->StartWrite(message); }
  void finish(const grpc::Status& status, const Sent* last) override {
    if (last != nullptr) {
      this->StartWriteAndFinish(last, {}, status);
    } else {
      this->Finish(status);
    }
  }

  void OnReadDone(bool ok) override { listener_->read_done(ok); }
  void OnWriteDone(bool ok) override { listener_->write_done(ok); }
  void OnDone() override { listener_->stream_ended(grpc::Status::OK); }

 private:
  StreamListener* listener_ = nullptr;
};

class GrpcFeatureCall final : public FeatureCall {
 public:
  explicit GrpcFeatureCall(worker::Worker::Stub& stub) : stub_(stub) {}
  void start(TimeNs patience) override {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(patience / 1'000'000));
    stream_ = stub_.Feature(&context_);
  }
  bool write(const worker::FeatureChunk& chunk) override { return stream_->Write(chunk); }
  bool read(worker::FeatureReply& into) override { return stream_->Read(&into); }
  grpc::Status finish() override {
    stream_->WritesDone();
    worker::FeatureReply rest;
    stream_->Read(&rest);
    return stream_->Finish();
  }
  void cancel() override { context_.TryCancel(); }

 private:
  worker::Worker::Stub& stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<worker::FeatureChunk, worker::FeatureReply>> stream_;
};

class GrpcFeatureLink final : public FeatureLink {
 public:
  GrpcFeatureLink(std::string address, const WorkerSecurity& security)
      : address_(std::move(address)), security_(security) {
    reconnect();
  }
  std::unique_ptr<FeatureCall> call() override { return std::make_unique<GrpcFeatureCall>(*stub_); }
  void reconnect() override { stub_ = worker::Worker::NewStub(worker_channel(address_, security_)); }

 private:
  const std::string address_;
  const WorkerSecurity security_;
  std::unique_ptr<worker::Worker::Stub> stub_;
};

class GrpcWorkerListener final : public WorkerListener, private worker::Worker::CallbackService {
 public:
  explicit GrpcWorkerListener(WorkerCalled& called) : called_(called) {}
  ~GrpcWorkerListener() override { stop(); }

  Status open(const std::string& host, int port, const WorkerSecurity& security) {
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(16 << 20);
    ask_silent_callers(builder);
    HEDDLE_ASSIGN_OR_RETURN(listener_, grpc_listen(builder, host, port, security.tls, *this, "servers"));
    return {};
  }
  int port() const override { return listener_.port; }
  void stop() override {
    if (!listener_.server) return;
    listener_.server->Shutdown(std::chrono::system_clock::now());
    listener_.server->Wait();
  }

 private:
  grpc::ServerBidiReactor<worker::ToWorker, worker::FromWorker>* Session(
      grpc::CallbackServerContext*) override {
    auto stream = std::make_unique<GrpcCalled<worker::FromWorker, worker::ToWorker>>();
    auto* const reactor = stream.get();
    called_.session(std::move(stream));
    return reactor;
  }
  grpc::ServerBidiReactor<worker::FeatureChunk, worker::FeatureReply>* Feature(
      grpc::CallbackServerContext*) override {
    auto stream = std::make_unique<GrpcCalled<worker::FeatureReply, worker::FeatureChunk>>();
    auto* const reactor = stream.get();
    called_.feature(std::move(stream));
    return reactor;
  }

  WorkerCalled& called_;
  GrpcListener listener_;
};

class GrpcWorkerNetwork final : public WorkerNetwork {
 public:
  std::unique_ptr<SessionCall> session(const std::string& address, const WorkerSecurity& security) override {
    return std::make_unique<GrpcSessionCall>(address, security);
  }
  std::unique_ptr<FeatureLink> feature_link(const std::string& address,
                                            const WorkerSecurity& security) override {
    return std::make_unique<GrpcFeatureLink>(address, security);
  }
  Result<std::unique_ptr<WorkerListener>> listen(const std::string& host, int port,
                                                 const WorkerSecurity& security,
                                                 WorkerCalled& called) override {
    auto listener = std::make_unique<GrpcWorkerListener>(called);
    HEDDLE_RETURN_IF_ERROR(listener->open(host, port, security));
    return std::unique_ptr<WorkerListener>(std::move(listener));
  }
};

}  // namespace

std::shared_ptr<WorkerNetwork> grpc_worker_network() { return std::make_shared<GrpcWorkerNetwork>(); }

}  // namespace heddle
