// Servers and workers of other versions of their protocol: who works together, and what is said if they do not.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <mutex>

#include "heddle/base/log.h"
#include "heddle/serve/bus.h"
#include "heddle/serve/worker.h"
#include "heddle/serve/worker_pool.h"
#include "serve_process.h"
#include "worker.grpc.pb.h"
#include "workers/protocol_version.h"
#include "workers/worker_proof.h"

namespace heddle {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr uint32_t kNone = 0, kTwoAhead = kWorkerProtocol + 2;

// A worker that has only the protocol's first messages.
class VersionedWorker final : public worker::Worker::Service {
 public:
  VersionedWorker(uint32_t version, const std::string& token) : version_(version), token_(token) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~VersionedWorker() override { server_->Shutdown(std::chrono::system_clock::now()); }
  std::string entry() const {
    WorkerEntry e;
    e.address = address();
    e.incarnation = "1";
    e.devices = {{"c", 1}};
    return worker_entry_text(e);
  }
  grpc::Status Session(grpc::ServerContext*,
                       grpc::ServerReaderWriter<worker::FromWorker, worker::ToWorker>* stream) override {
    worker::ToWorker message;
    bool first = true, opened = false;
    CalledProof proof({token_, kSessionCall, address()});
    while (stream->Read(&message)) {
      worker::FromWorker back;
      if (first) back.set_version(version_);
      if (message.has_open()) opened = true;
      if (opened) {
        const std::lock_guard lock(mutex_);
        opened_ = true;
      }
      if (message.has_hello()) {
        *back.mutable_challenge() = proof.answer(message.hello());
      } else if (message.has_ping()) {
        back.mutable_pong();
      } else {
        continue;
      }
      first = false;
      stream->Write(back);
    }
    return grpc::Status::OK;
  }
  bool opened() const {
    const std::lock_guard lock(mutex_);
    return opened_;
  }

 private:
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  const uint32_t version_;
  const std::string token_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  mutable std::mutex mutex_;
  bool opened_ = false;
};

class WorkerVersions : public testing::Test {
 protected:
  void SetUp() override {
    set_log(LogLevel::kWarning, LogForm::kStamped);
    auto bus = in_process_bus({.lease_s = .2});
    ASSERT_TRUE(bus.ok());
    bus_ = std::move(*bus);
  }
  void TearDown() override { set_log(LogLevel::kError, LogForm::kStamped); }
  void start_pool(const std::string& token = "") {
    WorkerPoolOptions options;
    options.lease_s = .2;
    options.security.token = token;
    auto pool = WorkerPool::create(bus_, options);
    ASSERT_TRUE(pool.ok());
    pool_ = *pool;
  }
  void start_worker() {
    WorkerOptions options;
    options.name = "mine";
    options.devices = {{"c", 1}};
    auto made = Worker::start(options, *bus_);
    ASSERT_TRUE(made.ok());
    worker_ = std::move(*made);
    stub_ = worker::Worker::NewStub(grpc::CreateChannel("127.0.0.1:" + std::to_string(worker_->port()),
                                                        grpc::InsecureChannelCredentials()));
  }
  WorkerState state() const {
    const auto all = pool_->workers();
    return all.empty() ? WorkerState() : all[0];
  }
  // The reason why the server does not use this worker.
  std::string refused(uint32_t version, const std::string& token = "") {
    start_pool(token);
    const VersionedWorker other(version, token);
    const auto is_refused = [&] { return state().reason.find("version") != std::string::npos; };
    // Announced again and again, as a worker does.
    EXPECT_TRUE(eventually([&] { return bus_->announce("w", other.entry()).ok() && is_refused(); }));
    const auto reason = state().reason;
    EXPECT_TRUE(eventually([&] { return bus_->announce("w", other.entry()).ok() && state().sessions >= 3; }));
    EXPECT_EQ(state().losses, 0U) << "it was never connected";
    EXPECT_EQ(other.opened(), token.empty())
        << "with a token the version is known before the session is open";
    pool_.reset();
    return reason;
  }
  static size_t lines(const std::string& text, const std::string& part) {
    size_t count = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
    return count;
  }

  std::shared_ptr<WorkerBus> bus_;
  std::shared_ptr<WorkerPool> pool_;
  std::unique_ptr<Worker> worker_;
  std::unique_ptr<worker::Worker::Stub> stub_;
};

TEST(ProtocolVersion, WorksWithTheSameAndOneBeside) {
  EXPECT_TRUE(works_with(5, 5));
  EXPECT_TRUE(works_with(4, 5)) << "one back";
  EXPECT_TRUE(works_with(6, 5)) << "which goes one back";
  EXPECT_FALSE(works_with(3, 5));
  EXPECT_FALSE(works_with(7, 5));
  EXPECT_FALSE(works_with(0, 1)) << "from before versions";
  EXPECT_FALSE(works_with(~uint32_t{0}, 1));
  EXPECT_EQ(version_refusal("the worker", 3, "the server", 5),
            "the worker has version 3 of the protocol between server and workers, the server has version 5; "
            "upgrade the worker");
  EXPECT_EQ(version_refusal("the worker", 0, "the server", 1),
            "the worker has no version of the protocol between server and workers, the server has version 1; "
            "upgrade the worker");
}

TEST_F(WorkerVersions, OfNowAndTheNextAreConnected) {
  start_pool();
  for (const uint32_t version : {kWorkerProtocol, kWorkerProtocol + 1}) {
    const VersionedWorker other(version, "");
    EXPECT_TRUE(
        eventually([&] { return bus_->announce("w", other.entry()).ok() && state().state == "connected"; }));
    EXPECT_TRUE(bus_->withdraw("w").ok());
    pool_.reset();
    start_pool();
  }
}

TEST_F(WorkerVersions, OfWorkersThatDoNotFitAreNamedInTheLogOfTheServerOnce) {
  for (const std::string token : {"", "the fleet's own token"}) {
    for (const uint32_t version : {kNone, kTwoAhead}) {
      testing::internal::CaptureStderr();
      const auto reason = refused(version, token);
      const auto log = testing::internal::GetCapturedStderr();
      EXPECT_EQ(reason, version_refusal("the worker", version, "the server"));
      EXPECT_EQ(lines(log, "worker w cannot be used: " + reason), 1U) << log;
    }
  }
}

TEST_F(WorkerVersions, OfServersThatDoNotFitAreNamedByWorkersOnce) {
  start_worker();
  ASSERT_NE(stub_, nullptr);
  const auto opened = [this](uint32_t version) {
    grpc::ClientContext context;
    const auto stream = stub_->Session(&context);
    worker::ToWorker message;
    message.set_version(version);
    message.mutable_open()->set_epoch(1);
    message.mutable_open()->set_lease_s(1);
    stream->Write(message);
    message.Clear();
    message.mutable_ping();
    stream->Write(message);
    stream->WritesDone();
    worker::FromWorker back;
    while (stream->Read(&back)) EXPECT_EQ(back.version(), kWorkerProtocol);
    return stream->Finish();
  };
  EXPECT_TRUE(opened(kWorkerProtocol).ok());
  for (const uint32_t version : {kNone, kTwoAhead}) {
    const auto why = version_refusal("the server", version, "the worker");
    testing::internal::CaptureStderr();
    for (int i = 0; i < 3; ++i) {
      const auto status = opened(version);
      EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
      EXPECT_EQ(status.error_message(), why);
    }
    const auto log = testing::internal::GetCapturedStderr();
    EXPECT_EQ(lines(log, "worker mine: refuses a server: " + why), 1U) << log;
  }
  EXPECT_EQ(worker_->counters().sessions, 1U);
}

// As a worker two versions ahead refuses this server: the server's log has the worker's words.
TEST_F(WorkerVersions, ThatWorkersRefuseAreInTheLogOfTheServer) {
  class Refusing final : public worker::Worker::Service {
    grpc::Status Session(grpc::ServerContext*,
                         grpc::ServerReaderWriter<worker::FromWorker, worker::ToWorker>* stream) override {
      worker::ToWorker message;
      stream->Read(&message);
      return {grpc::StatusCode::UNIMPLEMENTED,
              version_refusal("the server", message.version(), "the worker", kTwoAhead)};
    }
  } service;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  testing::internal::CaptureStderr();
  start_pool();
  WorkerEntry entry;
  entry.address = "127.0.0.1:" + std::to_string(port);
  entry.incarnation = "1";
  entry.devices = {{"c", 1}};
  EXPECT_TRUE(eventually(
      [&] { return bus_->announce("w", worker_entry_text(entry)).ok() && state().sessions >= 3; }));
  EXPECT_THAT(state().reason,
              HasSubstr(version_refusal("the server", kWorkerProtocol, "the worker", kTwoAhead)));
  pool_.reset();
  const auto log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(lines(log, "worker w cannot be used: "), 1U) << log;
  EXPECT_THAT(log, AllOf(HasSubstr("the server has version " + std::to_string(kWorkerProtocol)),
                         HasSubstr("the worker has version " + std::to_string(kTwoAhead))));
  server->Shutdown(std::chrono::system_clock::now());
}

TEST_F(WorkerVersions, OfFeatureMapsAreCheckedByTheReceiver) {
  start_worker();
  ASSERT_NE(stub_, nullptr);
  for (const uint32_t version : {kNone, kWorkerProtocol, kTwoAhead}) {
    grpc::ClientContext context;
    const auto stream = stub_->Feature(&context);
    worker::FeatureChunk chunk;
    chunk.set_version(version);
    stream->Write(chunk);
    stream->WritesDone();
    worker::FeatureReply reply;
    while (stream->Read(&reply)) {
    }
    const auto status = stream->Finish();
    if (version == kWorkerProtocol) {
      EXPECT_TRUE(status.ok()) << status.error_message();
    } else {
      EXPECT_EQ(status.error_message(), version_refusal("the sender", version, "the receiver"));
    }
  }
}

}  // namespace
}  // namespace heddle
