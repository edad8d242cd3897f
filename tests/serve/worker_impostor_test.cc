// Strangers that are taken for workers, servers or senders: they learn nothing of the token, and get nothing.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <future>
#include <mutex>

#include "heddle/serve/bus.h"
#include "heddle/serve/worker.h"
#include "heddle/serve/worker_pool.h"
#include "nats_server.h"
#include "serve_process.h"
#include "worker.grpc.pb.h"
#include "workers/feature_maps.h"
#include "workers/protocol_version.h"
#include "workers/worker_proof.h"

namespace heddle {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kToken = "the fleet's own token";

// All that somebody was sent.
class Seen {
 public:
  void note(const grpc::ServerContext& context) {
    for (const auto& [name, value] : context.client_metadata())
      note("", std::string(name.data(), name.size()) + ": " + std::string(value.data(), value.size()));
  }
  void note(const google::protobuf::Message& message) {
    note(message.GetTypeName(), message.SerializeAsString());
  }
  std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }
  int messages() const {
    const std::lock_guard lock(mutex_);
    return messages_;
  }

 private:
  void note(const std::string& type, const std::string& what) {
    const std::lock_guard lock(mutex_);
    text_ += what + "\n";
    messages_ += !type.empty();
  }
  mutable std::mutex mutex_;
  std::string text_;
  int messages_ = 0;
};

// Answers as whoever it pretends to be would, without the token.
class Impostor final : public worker::Worker::Service, public worker::Registry::Service {
 public:
  using Answer = std::function<worker::Challenge(const worker::Hello&)>;
  explicit Impostor(Answer answer = {}) : answer_(std::move(answer)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(static_cast<worker::Worker::Service*>(this));
    builder.RegisterService(static_cast<worker::Registry::Service*>(this));
    server_ = builder.BuildAndStart();
  }
  ~Impostor() override { server_->Shutdown(std::chrono::system_clock::now()); }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  WorkerEntry entry(const std::string& name, const std::map<std::string, int64_t>& devices) const {
    WorkerEntry e;
    e.name = name;
    e.address = address();
    e.incarnation = "1";
    e.devices = devices;
    return e;
  }

  grpc::Status Session(grpc::ServerContext* context,
                       grpc::ServerReaderWriter<worker::FromWorker, worker::ToWorker>* stream) override {
    seen.note(*context);
    worker::ToWorker message;
    while (stream->Read(&message)) {
      seen.note(message);
      worker::FromWorker back;
      back.set_version(kWorkerProtocol);
      if (message.has_hello()) {
        *back.mutable_challenge() = answer(message.hello());
      } else {
        back.mutable_pong();
      }
      stream->Write(back);
    }
    return grpc::Status::OK;
  }
  grpc::Status Feature(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<worker::FeatureReply, worker::FeatureChunk>* stream) override {
    seen.note(*context);
    worker::FeatureChunk chunk;
    while (stream->Read(&chunk)) {
      seen.note(chunk);
      worker::FeatureReply back;
      *back.mutable_challenge() = answer(chunk.hello());
      stream->Write(back);
    }
    return grpc::Status::OK;
  }
  grpc::Status Ask(grpc::ServerContext* context, const worker::Question* question,
                   worker::Challenge* challenge) override {
    seen.note(*context);
    seen.note(*question);
    challenge->set_nonce(fresh_nonce());
    return grpc::Status::OK;
  }
  grpc::Status Announce(grpc::ServerContext* context, const worker::Announcement* what,
                        worker::Lease* lease) override {
    seen.note(*context);
    seen.note(*what);
    lease->set_seconds(.2);
    return grpc::Status::OK;
  }

  Seen seen;

 private:
  worker::Challenge answer(const worker::Hello& hello) const {
    return answer_ ? answer_(hello) : worker::Challenge();
  }
  const Answer answer_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

class Impostors : public testing::Test {
 protected:
  void SetUp() override {
    auto bus = in_process_bus({.lease_s = .4});
    ASSERT_TRUE(bus.ok());
    bus_ = std::move(*bus);
    security_.token = kToken;
    WorkerPoolOptions options;
    options.lease_s = .4;
    options.security = security_;
    auto pool = WorkerPool::create(bus_, options);
    ASSERT_TRUE(pool.ok());
    pool_ = *pool;
  }
  std::unique_ptr<Worker> genuine(Announcer& announcer) const {
    WorkerOptions options;
    options.name = "genuine";
    options.devices = {{"c", 1}};
    options.security = security_;
    auto made = Worker::start(options, announcer);
    EXPECT_TRUE(made.ok()) << made.error().to_string();
    return std::move(*made);
  }
  WorkerState state_of(const std::string& name) const {
    for (const auto& w : pool_->workers())
      if (w.name == name) return w;
    return {};
  }
  // That the server called and was not taken in.
  void expect_unmasked(const Impostor& impostor) {
    ASSERT_TRUE(bus_->announce("impostor", worker_entry_text(impostor.entry("impostor", {{"c", 9}}))).ok());
    EXPECT_TRUE(eventually([&] { return lacks_proof(state_of("impostor").reason); }))
        << state_of("impostor").reason;
    EXPECT_EQ(state_of("impostor").losses, 0U) << "it was never connected";
    EXPECT_EQ(impostor.seen.messages(), 1) << "a hello, and nothing more";
    EXPECT_THAT(impostor.seen.text(), Not(HasSubstr(kToken)));
  }
  static bool lacks_proof(const std::string& reason) {
    return reason.find("does not prove that it knows the fleet's token") != std::string::npos;
  }
  static std::unique_ptr<worker::Worker::Stub> call(const std::string& address) {
    return worker::Worker::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  }

  std::shared_ptr<WorkerBus> bus_;
  WorkerSecurity security_;
  std::shared_ptr<WorkerPool> pool_;
};

TEST_F(Impostors, AnnouncedAsWorkersGetAHelloAndNothingToDo) {
  for (const Impostor::Answer& answer :
       {Impostor::Answer(), Impostor::Answer([](const worker::Hello& hello) {
          // What it has heard, said back.
          worker::Challenge challenge;
          challenge.set_nonce(hello.nonce());
          challenge.set_proof(hello.nonce());
          return challenge;
        }),
        Impostor::Answer([](const worker::Hello& hello) {
          return CalledProof({"another token", kSessionCall, "127.0.0.1:1"}).answer(hello);
        })}) {
    const Impostor impostor(answer);
    expect_unmasked(impostor);
    EXPECT_TRUE(bus_->withdraw("impostor").ok());
    TearDown();
    SetUp();
  }
}

// It asks a worker that knows the token for the answer; that worker says where it is itself.
TEST_F(Impostors, CannotAnswerBySomebodyElse) {
  const auto worker = genuine(*bus_);
  EXPECT_TRUE(eventually([&] { return state_of("genuine").state == "connected"; }));
  const auto stub = call("127.0.0.1:" + std::to_string(worker->port()));
  const Impostor impostor([&stub](const worker::Hello& hello) {
    grpc::ClientContext context;
    const auto stream = stub->Session(&context);
    worker::ToWorker message;
    message.set_version(kWorkerProtocol);
    *message.mutable_hello() = hello;
    stream->Write(message);
    worker::FromWorker back;
    EXPECT_TRUE(stream->Read(&back));
    EXPECT_FALSE(back.challenge().proof().empty());
    return back.challenge();
  });
  expect_unmasked(impostor);
  EXPECT_EQ(state_of("genuine").state, "connected");
}

TEST_F(Impostors, AsServersAreRefusedByWorkers) {
  const auto worker = genuine(*bus_);
  const auto stub = call("127.0.0.1:" + std::to_string(worker->port()));
  const auto open_with = [&stub](bool hello,
                                 const std::function<std::string(const worker::Challenge&)>& proof) {
    grpc::ClientContext context;
    const auto stream = stub->Session(&context);
    worker::ToWorker message;
    message.set_version(kWorkerProtocol);
    worker::FromWorker back;
    if (hello) {
      message.mutable_hello()->set_nonce(fresh_nonce());
      stream->Write(message);
      stream->Read(&back);
    }
    message.mutable_open()->set_epoch(~uint64_t{0});
    message.mutable_open()->set_lease_s(1);
    message.mutable_open()->set_proof(proof(back.challenge()));
    stream->Write(message);
    return stream->Finish().error_code();
  };
  const auto refused = grpc::StatusCode::UNAUTHENTICATED;
  EXPECT_EQ(open_with(false, [](const auto&) { return ""; }), refused);
  EXPECT_EQ(open_with(true, [](const auto&) { return ""; }), refused);
  EXPECT_EQ(open_with(true, [](const auto& c) { return c.proof(); }), refused);  // the worker's own
  EXPECT_EQ(open_with(true, [](const auto& c) { return proof_of("another token", {c.nonce()}); }), refused);
  EXPECT_TRUE(eventually([&] { return state_of("genuine").state == "connected"; }));
}

TEST_F(Impostors, ThatWorkersAnnounceThemselvesToDoNotLearnTheToken) {
  const Impostor impostor;
  const auto announcer = registry_announcer(impostor.address(), security_);
  ASSERT_TRUE(announcer.ok());
  const auto worker = genuine(**announcer);
  EXPECT_TRUE(eventually([&] { return impostor.seen.messages() >= 3; }));
  EXPECT_THAT(impostor.seen.text(), HasSubstr("genuine"));
  EXPECT_THAT(impostor.seen.text(), Not(HasSubstr(kToken)));
}

TEST_F(Impostors, NeitherSendNorTakeFeatureMaps) {
  const auto worker = genuine(*bus_);
  FeatureSender::Parcel parcel;
  parcel.batch = 7;
  parcel.map.bytes = 3000;
  parcel.map.digests = {42};
  parcel.patience_s = 20;
  const auto send = [&parcel](const WorkerSecurity& security, const std::string& address) {
    const auto network = grpc_worker_network();
    FeatureSender sender(*network, security);
    std::promise<Status> result;
    auto copy = parcel;
    copy.sent = [&result](const Status& status) { result.set_value(status); };
    sender.send(address, copy);
    return result.get_future().get();
  };
  const auto address = "127.0.0.1:" + std::to_string(worker->port());
  EXPECT_FALSE(send({}, address).ok());
  WorkerSecurity wrong;
  wrong.token = "another token";
  EXPECT_FALSE(send(wrong, address).ok());
  EXPECT_EQ(worker->counters().maps_received, 0U);
  const auto right = send(security_, address);
  EXPECT_TRUE(right.ok()) << right.error().to_string();
  EXPECT_EQ(worker->counters().maps_received, 1U);
  // To a stranger at an address that was another worker's.
  const Impostor impostor;
  const auto kept = send(security_, impostor.address());
  ASSERT_FALSE(kept.ok());
  EXPECT_THAT(kept.error().to_string(), HasSubstr("does not prove"));
  EXPECT_EQ(impostor.seen.messages(), 1) << "a hello, and nothing more";
  EXPECT_THAT(impostor.seen.text(), Not(HasSubstr(kToken)));
}

TEST(TimedChallenges, HoldForAWhileWhereTheyWereGiven) {
  const TimedChallenges ours, theirs;
  EXPECT_TRUE(ours.is_valid(ours.now()));
  EXPECT_FALSE(ours.is_valid(theirs.now()));
  EXPECT_FALSE(ours.is_valid(""));
}

TEST(WorkerProof, IsOfAllItsFields) {
  const auto proof = proof_of(kToken, {"a", "bc"});
  EXPECT_TRUE(is_proof(proof, kToken, {"a", "bc"}));
  EXPECT_FALSE(is_proof(proof, kToken, {"ab", "c"}));
  EXPECT_FALSE(is_proof(proof, kToken, {"a", "bc", ""}));
  EXPECT_FALSE(is_proof(proof, "another token", {"a", "bc"}));
  EXPECT_FALSE(is_proof("", kToken, {"a", "bc"}));
  EXPECT_NE(fresh_nonce(), fresh_nonce());
}

// As a user: a stranger in the bucket of a fleet that is found by NATS.
TEST_F(Impostors, FoundByNatsGetNothingToDo) {
  const NatsServer nats;
  if (!nats.available()) GTEST_SKIP() << "no NATS";
  const ServeFolder folder;
  std::ofstream(folder.file("token")) << kToken << "\n";
  const auto bus = nats.bus({.lease_s = 30}, "heddle");
  ASSERT_TRUE(bus);
  const Impostor impostor;
  ASSERT_TRUE(
      bus->announce("impostor", worker_entry_text(impostor.entry("impostor", {{"front", 9}, {"back", 9}})))
          .ok());
  ServedFleet served(front_and_back(1), {"--bus", nats.url(), "--worker-token-file", folder.file("token")});
  const Process worker({HEDDLE_PROGRAM, "worker", "--quiet", "--name", "genuine", "--bus", nats.url(),
                        "--devices", "front=1,back=1", "--token-file", folder.file("token")});
  ASSERT_TRUE(served.serves());
  EXPECT_TRUE(served.is_connected("genuine"));
  const auto answer =
      RawClient(served.port())
          .ask("POST", "/v2/models/net/infer",
               R"({"inputs": [{"name": "payload", "shape": [1], "datatype": "UINT8", "data": [7]}]})");
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_TRUE(lacks_proof(served.worker("impostor")["reason"])) << served.worker("impostor");
  EXPECT_THAT(impostor.seen.text(), Not(HasSubstr(kToken)));
}

}  // namespace
}  // namespace heddle
