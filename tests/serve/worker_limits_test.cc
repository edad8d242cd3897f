// What a worker does with a server that makes it keep too much.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <set>

#include "workers/feature_maps.h"
#include "workers/protocol_version.h"
#include "workers/worker_session.h"

namespace heddle {
namespace {

using testing::HasSubstr;

// What the worker has written; the server reads it when `reads` is set.
struct Sent {
  std::vector<worker::FromWorker> messages;
  std::optional<grpc::Status> status;
  bool reads = true;
};

class FakeStream final : public CalledSession {
 public:
  explicit FakeStream(Sent& sent) : sent_(sent) {}
  void start(StreamListener&) override {}
  void read(worker::ToWorker* into) override { into_ = into; }
  void write(const worker::FromWorker* message) override {
    sent_.messages.push_back(*message);
    unread_ = true;
  }
  void finish(const grpc::Status& status, const worker::FromWorker*) override { sent_.status = status; }

  void give(WorkerSession& session, const worker::ToWorker& message) {
    *into_ = message;
    session.read_done(true);
    while (sent_.reads && std::exchange(unread_, false)) session.write_done(true);
  }

 private:
  Sent& sent_;
  worker::ToWorker* into_ = nullptr;
  bool unread_ = false;
};

WorkerOptions options_of(const char* name) {
  WorkerOptions options;
  options.name = name;
  return options;
}

class WorkerLimitsTest : public testing::Test {
 protected:
  WorkerLimitsTest() {
    session_->admit = [](WorkerSession& s) {
      s.opened();
      return std::string();
    };
    session_->begin();
    worker::ToWorker open;
    open.set_version(kWorkerProtocol);
    open.mutable_open()->set_epoch(1);
    open.mutable_open()->set_lease_s(10);
    give(open);
    worker::ToWorker load;
    load.mutable_load()->set_generation(1);
    auto& role = *load.mutable_load()->add_roles();
    role.set_first(true);
    role.set_last(true);
    give(load);
  }
  ~WorkerLimitsTest() override { session_->stream_ended(grpc::Status::OK); }

  void give(const worker::ToWorker& message) { stream_->give(*session_, message); }
  void input(uint64_t attempt, size_t bytes) {
    worker::ToWorker message;
    auto& piece = *message.mutable_input();
    piece.set_attempt(attempt);
    piece.set_computed(true);
    piece.set_data(std::string(bytes, 'x'));
    give(message);
  }
  // A refusal; empty: it has begun.
  std::string run(uint64_t attempt) {
    worker::ToWorker message;
    auto& run = *message.mutable_run();
    run.set_attempt(attempt);
    run.set_generation(1);
    run.set_rows(1);
    run.set_expected_ns(kNsPerSecond);
    const size_t before = sent_.messages.size();
    give(message);
    return sent_.messages.size() == before ? "" : sent_.messages.back().done().error();
  }
  void ping() {
    worker::ToWorker message;
    message.mutable_ping()->set_number(1);
    give(message);
  }

  WorkerResources resources_{options_of("w")};
  Sent sent_;
  FakeStream* const stream_ = new FakeStream(sent_);
  const std::shared_ptr<WorkerSession> session_ =
      std::make_shared<WorkerSession>(resources_, std::unique_ptr<CalledSession>(stream_));
};

TEST_F(WorkerLimitsTest, ABatchWithTooManyBytesIsRefusedAndNoneIsKept) {
  resources_.limits.input_bytes = 1000;
  input(1, 600);
  input(1, 600);
  input(1, 600);
  input(2, 1000);  // fits, for none of the first is kept
  EXPECT_THAT(run(1), HasSubstr("exceed 1000 bytes"));
  EXPECT_EQ(run(2), "");
  EXPECT_FALSE(sent_.status);
}

TEST_F(WorkerLimitsTest, OfSeveralBatchesTheOldestIsDropped) {
  resources_.limits.input_bytes = 1000;
  for (const uint64_t attempt : {1, 2, 3}) input(attempt, 400);
  input(2, 200);
  input(2, 201);
  EXPECT_EQ(run(3), "") << "what is left of the others has given way";
  input(4, 1001);
  EXPECT_THAT(run(4), HasSubstr("exceed"));
}

TEST_F(WorkerLimitsTest, OfManyPlansTheOldestIsForgotten) {
  resources_.limits.open_plans = 3;
  worker::ToWorker load;
  for (const uint64_t generation : {1, 2, 3, 4}) {
    load.mutable_load()->set_generation(generation);
    load.mutable_load()->add_open(generation);
    if (generation == 4) {
      EXPECT_EQ(run(1), "");
    }
    give(load);
  }
  EXPECT_THAT(run(2), HasSubstr("has not loaded"));
}

// A newer session may have ended it while it was let in.
TEST_F(WorkerLimitsTest, ASessionThatHasEndedIsNotOpened) {
  Sent sent;
  auto* const stream = new FakeStream(sent);
  const auto session = std::make_shared<WorkerSession>(resources_, std::unique_ptr<CalledSession>(stream));
  session->admit = [](WorkerSession& s) {
    s.end({grpc::StatusCode::ABORTED, "a newer session has this worker"});
    s.opened();
    return std::string();
  };
  session->begin();
  worker::ToWorker open;
  open.set_version(kWorkerProtocol);
  open.mutable_open()->set_epoch(1);
  open.mutable_open()->set_lease_s(10);
  stream->give(*session, open);
  EXPECT_FALSE(session->open());
  ASSERT_TRUE(sent.status);
  EXPECT_EQ(sent.status->error_code(), grpc::StatusCode::ABORTED);
  session->stream_ended(grpc::Status::OK);
}

TEST_F(WorkerLimitsTest, AServerThatDoesNotReadIsLeft) {
  resources_.limits.unsent_bytes = 10'000;
  for (int i = 0; i < 1000; ++i) ping();
  EXPECT_FALSE(sent_.status) << "it reads";
  sent_.reads = false;
  for (int i = 0; i < 1000 && !sent_.status; ++i) ping();
  ASSERT_TRUE(sent_.status);
  EXPECT_EQ(sent_.status->error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_FALSE(session_->open());
}

// Links to workers that take a map when they are let.
class OtherWorkers final : public WorkerNetwork {
 public:
  std::unique_ptr<SessionCall> session(const std::string&, const WorkerSecurity&) override { return nullptr; }
  std::unique_ptr<FeatureLink> feature_link(const std::string&, const WorkerSecurity&) override {
    return std::make_unique<Link>(*this);
  }
  Result<std::unique_ptr<WorkerListener>> listen(const std::string&, int, const WorkerSecurity&,
                                                 WorkerCalled&) override {
    return io_error("not here");
  }
  std::promise<void> let;

 private:
  struct Call final : FeatureCall {
    explicit Call(std::shared_future<void> may) : let(std::move(may)) {}
    void start(TimeNs) override {}
    bool write(const worker::FeatureChunk&) override { return true; }
    bool read(worker::FeatureReply&) override { return false; }
    grpc::Status finish() override {
      let.wait();
      return grpc::Status::OK;
    }
    void cancel() override {}
    const std::shared_future<void> let;
  };
  struct Link final : FeatureLink {
    explicit Link(OtherWorkers& of) : all(of) {}
    std::unique_ptr<FeatureCall> call() override { return std::make_unique<Call>(all.may_take_); }
    void reconnect() override {}
    OtherWorkers& all;
  };
  const std::shared_future<void> may_take_{let.get_future()};
};

TEST(FeatureSender, KeepsNoMoreReceiversThanItMay) {
  OtherWorkers others;
  FeatureSender sender(others, {}, 2);
  const auto send = [&sender](const std::string& address) {
    const auto result = std::make_shared<std::promise<Status>>();
    FeatureSender::Parcel parcel;
    parcel.map.bytes = 8;
    parcel.patience_s = 100;
    parcel.sent = [result](const Status& status) { result->set_value(status); };
    sender.send(address, std::move(parcel));
    return result->get_future();
  };
  auto a = send("a"), b = send("b"), refused = send("c"), again = send("a");
  EXPECT_THAT(refused.get().error().to_string(), HasSubstr("feature maps to 2 others"));
  others.let.set_value();
  EXPECT_TRUE(a.get().ok());
  EXPECT_TRUE(b.get().ok());
  EXPECT_TRUE(again.get().ok());
  // Whichever is idle gives way.
  EXPECT_TRUE(send("c").get().ok());
  EXPECT_TRUE(send("d").get().ok());
  std::set<std::string> known;
  for (const auto& link : sender.links()) known.insert(link.address());
  EXPECT_EQ(known.size(), 2U);
  EXPECT_TRUE(known.contains("d"));
}

}  // namespace
}  // namespace heddle
