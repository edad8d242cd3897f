// A worker as the server's and the other workers' calls find it, right and wrong ones.
#include "heddle/serve/worker.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <thread>

#include "data_plane_support.h"
#include "heddle/serve/live_plane.h"
#include "heddle/serve/remote_devices.h"
#include "heddle/serve/worker_pool.h"
#include "serve_support.h"
#include "worker.grpc.pb.h"
#include "workers/feature_maps.h"
#include "workers/protocol_version.h"

namespace heddle {
namespace {

using testing::HasSubstr;

class WorkerTest : public testing::Test {
 protected:
  using Stream = grpc::ClientReaderWriter<worker::ToWorker, worker::FromWorker>;
  // A session as a server would open it.
  struct Session {
    explicit Session(worker::Worker::Stub& stub, uint64_t epoch, uint32_t version = kWorkerProtocol)
        : stream(stub.Session(&context)) {
      worker::ToWorker open;
      open.set_version(version);
      open.mutable_open()->set_epoch(epoch);
      open.mutable_open()->set_lease_s(30);
      stream->Write(open);
    }
    worker::FromWorker read() const {
      worker::FromWorker message;
      EXPECT_TRUE(stream->Read(&message));
      return message;
    }
    grpc::Status finish() const {
      worker::FromWorker message;
      while (stream->Read(&message)) {
      }
      return stream->Finish();
    }
    grpc::ClientContext context;
    std::unique_ptr<Stream> stream;
  };

  void SetUp() override {
    auto bus = in_process_bus({});
    ASSERT_TRUE(bus.ok());
    bus_ = std::move(*bus);
    WorkerOptions options;
    options.name = "w";
    options.devices = {{"c", 4}, {"c0", 1}};
    auto worker = Worker::start(options, *bus_);
    ASSERT_TRUE(worker.ok()) << worker.error().to_string();
    worker_ = std::move(*worker);
    stub_ = worker::Worker::NewStub(grpc::CreateChannel("127.0.0.1:" + std::to_string(worker_->port()),
                                                        grpc::InsecureChannelCredentials()));
  }

  // Two devices of a pipeline: 0 runs its first partition, 1 its last. `open`: which plans the server has.
  static worker::ToWorker load(uint64_t generation = 1, const std::vector<uint64_t>& open = {}) {
    worker::ToWorker message;
    message.mutable_load()->set_generation(generation);
    for (const uint64_t g : open) message.mutable_load()->add_open(g);
    for (const uint32_t device : {0U, 1U}) {
      auto& role = *message.mutable_load()->add_roles();
      role.set_device(device);
      role.set_output_bytes(5000);
      role.set_first(device == 0);
      role.set_last(device == 1);
    }
    return message;
  }
  static worker::ToWorker run(uint64_t attempt, uint32_t device, uint32_t rows, uint64_t generation = 1) {
    worker::ToWorker message;
    auto& r = *message.mutable_run();
    r.set_attempt(attempt);
    r.set_batch(7);
    r.set_generation(generation);
    r.set_device(device);
    r.set_rows(rows);
    r.set_expected_ns(1'000'000);
    return message;
  }
  grpc::Status send_map(uint64_t batch, uint32_t device, uint64_t bytes, const std::string& data,
                        uint64_t digest) {
    grpc::ClientContext context;
    const auto writer = stub_->Feature(&context);
    worker::FeatureChunk chunk;
    chunk.set_version(kWorkerProtocol);
    chunk.set_batch(batch);
    chunk.set_device(device);
    chunk.set_bytes(bytes);
    chunk.add_digests(digest);
    chunk.set_data(data);
    writer->Write(chunk);
    writer->WritesDone();
    worker::FeatureReply reply;
    while (writer->Read(&reply)) {
    }
    return writer->Finish();
  }

  std::shared_ptr<WorkerBus> bus_;
  std::unique_ptr<Worker> worker_;
  std::unique_ptr<worker::Worker::Stub> stub_;
};

TEST_F(WorkerTest, AnnouncesItselfUntilItEnds) {
  EXPECT_TRUE(eventually([&] { return bus_->entries().size() == 1; }));
  const auto entry = worker_entry_from_text("w", bus_->entries()[0].value);
  ASSERT_TRUE(entry.ok());
  EXPECT_EQ(entry->address, "127.0.0.1:" + std::to_string(worker_->port()));
  EXPECT_EQ(entry->devices.at("c"), 4);
  worker_.reset();
  EXPECT_TRUE(bus_->entries().empty());
}

TEST_F(WorkerTest, RunsBatchesAndSendsMapsToItself) {
  Session s(*stub_, 1);
  s.stream->Write(load());
  EXPECT_EQ(s.read().loaded().generation(), 1U);
  const std::string bytes = "what a client has sent";
  for (const size_t cut : {size_t{0}, size_t{9}}) {
    worker::ToWorker input;
    input.mutable_input()->set_attempt(1);
    input.mutable_input()->set_row(1);
    input.mutable_input()->set_data(cut == 0 ? bytes.substr(0, 9) : bytes.substr(9));
    s.stream->Write(input);
  }
  s.stream->Write(run(1, 0, 2));
  const auto first = s.read();
  EXPECT_EQ(first.done().attempt(), 1U);
  EXPECT_EQ(first.done().error(), "");
  EXPECT_GE(first.done().measured_ns(), 1'000'000);
  worker::ToWorker transfer;
  auto& t = *transfer.mutable_transfer();
  t.set_attempt(2);
  t.set_batch(7);
  t.set_generation(1);
  t.set_source(0);
  t.set_device(1);
  t.set_address("127.0.0.1:" + std::to_string(worker_->port()));
  s.stream->Write(transfer);
  EXPECT_EQ(s.read().done().error(), "");
  s.stream->Write(run(3, 1, 2));
  const auto last = s.read();
  ASSERT_EQ(last.done().digests_size(), 2);
  EXPECT_EQ(last.done().digests(0), payload_digest(nullptr, 0));
  EXPECT_EQ(last.done().digests(1),
            payload_digest(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()));
  EXPECT_EQ(worker_->counters().runs, 2U);
}

TEST_F(WorkerTest, SaysWhatItCannotRun) {
  Session s(*stub_, 1);
  s.stream->Write(run(1, 0, 1));  // nothing is loaded
  EXPECT_THAT(s.read().done().error(), HasSubstr("has not loaded"));
  s.stream->Write(load());
  s.read();
  s.stream->Write(run(2, 1, 1));  // its map has not come
  EXPECT_THAT(s.read().done().error(), HasSubstr("has not come"));
  s.stream->Write(run(3, 0, 0));
  EXPECT_THAT(s.read().done().error(), HasSubstr("has not loaded"));
  s.stream->Write(run(4, 0, 100'000));
  EXPECT_THAT(s.read().done().error(), HasSubstr("has not loaded"));
  worker::ToWorker transfer;
  transfer.mutable_transfer()->set_attempt(5);
  transfer.mutable_transfer()->set_batch(99);
  s.stream->Write(transfer);
  EXPECT_THAT(s.read().done().error(), HasSubstr("not here"));
  worker::ToWorker row;
  row.mutable_input()->set_row(1'000'000);
  s.stream->Write(row);
  EXPECT_EQ(s.finish().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(WorkerTest, RunsWhatItsServerSentBeforeItKnewOfTheEnd) {
  const Session session(*stub_, 1);
  session.stream->Write(load());
  EXPECT_TRUE(session.read().has_loaded());
  std::jthread ends([this] { worker_->drain(3600); });
  EXPECT_TRUE(session.read().has_leaving());
  session.stream->Write(run(1, 0, 1));
  const auto done = session.read();
  EXPECT_EQ(done.done().attempt(), 1U);
  EXPECT_EQ(done.done().error(), "");
  worker::ToWorker left;
  left.mutable_left();
  session.stream->Write(left);
  session.stream->Write(run(2, 0, 1));
  const auto refused = session.read();
  EXPECT_EQ(refused.done().attempt(), 2U);
  EXPECT_EQ(refused.done().error(), "the worker is stopping");
  // The batch's feature map goes with its refusal, so nothing is left to do.
  ends.join();
}

TEST_F(WorkerTest, AServerThatKnowsNoEndOfWorkersIsRefusedAtOnce) {
  const Session session(*stub_, 1, kWorkerProtocol - 1);
  session.stream->Write(load());
  EXPECT_TRUE(session.read().has_loaded());
  worker_->drain(3600);
  session.stream->Write(run(1, 0, 1));
  EXPECT_EQ(session.read().done().error(), "the worker is stopping");
}

TEST_F(WorkerTest, ItsServerAnswersThatItKnowsOfTheEnd) {
  const auto pool = WorkerPool::create(bus_, {.lease_s = 3600});
  ASSERT_TRUE(pool.ok());
  Fleet fleet;
  fleet.models.resize(1);
  const auto deployment = small_deployment(60 * kNsPerSecond, {{{1, {kNsPerSecond / 100}, {}}}});
  (*pool)->open(fleet, deployment, 20, WaitFor::kAll, {});
  EXPECT_TRUE(worker_->counters().connected);
  worker_->drain(3600);
}

// What nobody has asked for is no reason to refuse runs.
TEST_F(WorkerTest, AnAnswerToNothingChangesNothing) {
  const Session session(*stub_, 1);
  session.stream->Write(load());
  EXPECT_TRUE(session.read().has_loaded());
  worker::ToWorker left;
  left.mutable_left();
  session.stream->Write(left);
  session.stream->Write(run(1, 0, 1));
  EXPECT_EQ(session.read().done().error(), "");
}

// A plan that serves stays however many others were tried beside it.
TEST_F(WorkerTest, KeepsThePlansThatTheServerHas) {
  Session s(*stub_, 1);
  uint64_t attempt = 0;
  const auto error_of = [&](uint64_t generation) {
    s.stream->Write(run(++attempt, 0, 1, generation));
    return s.read().done().error();
  };
  const auto expect_loaded = [&](uint64_t generation, const std::vector<uint64_t>& open) {
    s.stream->Write(load(generation, open));
    EXPECT_EQ(s.read().loaded().generation(), generation);
  };
  expect_loaded(1, {1});
  expect_loaded(2, {1, 2});
  expect_loaded(3, {1, 3});
  EXPECT_EQ(error_of(1), "");
  EXPECT_THAT(error_of(2), HasSubstr("has not loaded"));
  EXPECT_EQ(error_of(3), "");
  // Made before the one of plan 3, and later on its way.
  expect_loaded(1, {1, 2});
  EXPECT_EQ(error_of(3), "");
  expect_loaded(4, {});
  EXPECT_EQ(error_of(1), "") << "a list without plans closes none";
  EXPECT_EQ(error_of(4), "");
}

TEST_F(WorkerTest, AServerServesItsPlanAfterOthersWereTried) {
  const auto pool = WorkerPool::create(bus_, {});
  ASSERT_TRUE(pool.ok());
  Fleet fleet;
  fleet.models.resize(1);
  const auto deployment = small_deployment(60 * kNsPerSecond, {{{1, {kNsPerSecond / 100}, {}}}});
  const auto open = [&] { return (*pool)->open(fleet, deployment, 20, WaitFor::kAll, {}); };
  LivePlaneOptions options;
  options.patience.least_ns = 60 * kNsPerSecond;
  auto served = LivePlane::create_remote(deployment, options, open());
  ASSERT_TRUE(served.ok()) << served.error().to_string();
  for (int tried = 0; tried < 3; ++tried) ASSERT_TRUE(open());
  struct Row final : LiveRequest {
    std::atomic<bool> ended{false};
    void settled() override { ended = true; }
  } row;
  row.deadline = live_now() + 60 * kNsPerSecond;
  (*served)->submit(row);
  ASSERT_TRUE(eventually([&] { return row.ended.load(); }));
  EXPECT_EQ(row.outcome, Outcome::kInTime) << row.error;
  EXPECT_EQ((*served)->counters().given_up, 0U);
}

TEST_F(WorkerTest, TheNewestServerHasIt) {
  Session first(*stub_, 5);
  first.stream->Write(load());
  first.read();
  Session older(*stub_, 4);
  EXPECT_THAT(older.finish().error_message(), HasSubstr("another server"));
  Session newer(*stub_, 6);
  newer.stream->Write(run(1, 0, 1));  // with nothing of the first one's
  EXPECT_THAT(newer.read().done().error(), HasSubstr("has not loaded"));
  EXPECT_EQ(first.finish().error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(worker_->counters().sessions, 2U);
  grpc::ClientContext context;
  const auto stream = stub_->Session(&context);
  auto message = load();  // not Open
  message.set_version(kWorkerProtocol);
  stream->Write(message);
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(WorkerTest, AServerThatWasReplacedComesTooLate) {
  {
    Session successor(*stub_, epoch_of(7, 1));
    successor.stream->Write(load());
    successor.read();
    successor.context.TryCancel();
    (void)successor.finish();
  }
  // Its successor has no session at present, but will open one.
  Session replaced(*stub_, epoch_of(6, 99));
  EXPECT_THAT(replaced.finish().error_message(), HasSubstr("another server"));
  Session by_clock(*stub_, uint64_t{1} << 61);
  EXPECT_THAT(by_clock.finish().error_message(),
              HasSubstr("in term 7, and this one has no term; start it with"));
  Session again(*stub_, epoch_of(7, 2));
  again.stream->Write(load());
  EXPECT_EQ(again.read().loaded().generation(), 1U);
}

TEST(Epochs, GrowWithTheTermFirst) {
  EXPECT_LT(epoch_of(1, 0xffffffff), epoch_of(2, 1));
  EXPECT_LT(epoch_of(5, 1), epoch_of(5, 2));
  EXPECT_EQ(term_of(epoch_of(5, 77)), 5U);
  EXPECT_EQ(term_of(1'800'000'000'000'000'000), 0U);
  EXPECT_LT(1'800'000'000'000'000'000U, epoch_of(1, 0));
}

TEST_F(WorkerTest, ChecksMapsThatItIsSent) {
  std::string bytes(3000, '\0');
  fill_feature_bytes(7, 0, bytes);
  EXPECT_TRUE(send_map(7, 1, 3000, bytes, 42).ok());
  EXPECT_EQ(worker_->counters().map_bytes_received, 3000U);
  EXPECT_FALSE(send_map(8, 1, 3000, bytes, 42).ok());  // another batch's
  EXPECT_FALSE(send_map(7, 1, 4000, bytes, 42).ok());  // ends early
  EXPECT_FALSE(send_map(7, 1, 2000, bytes, 42).ok());  // longer than it says
  EXPECT_FALSE(send_map(7, 1, kMostFeatureBytes + 1, bytes, 42).ok());
  EXPECT_EQ(worker_->counters().maps_received, 1U);
  WorkerOptions options;
  options.name = "no name";
  options.devices = {{"c", 1}};
  EXPECT_FALSE(Worker::start(options, *bus_).ok());
  options.name = "x";
  options.devices.clear();
  EXPECT_FALSE(Worker::start(options, *bus_).ok());
  options.devices = {{"c", 1}};
  options.slowdown = 0;
  EXPECT_FALSE(Worker::start(options, *bus_).ok());
  options.slowdown = 1;
  options.port = worker_->port();
  EXPECT_FALSE(Worker::start(options, *bus_).ok());
}

}  // namespace
}  // namespace heddle
