// What a worker sends a server unasked: it takes bounded memory, and no value of it is out of range.
#include <gtest/gtest.h>

#include <memory>

#include "workers/ping_times.h"
#include "workers/server_session.h"

namespace heddle {
namespace {

// A stream to nobody.
class SilentCall final : public SessionCall {
 public:
  explicit SilentCall(int& cancelled) : cancelled_(cancelled) {}
  void read(worker::FromWorker*) override {}
  void write(const worker::ToWorker*) override {}
  void start(StreamListener&) override {}
  void cancel() override { ++cancelled_; }

 private:
  int& cancelled_;
};

class SilentNetwork final : public WorkerNetwork {
 public:
  std::unique_ptr<SessionCall> session(const std::string&, const WorkerSecurity&) override {
    return std::make_unique<SilentCall>(cancelled);
  }
  std::unique_ptr<FeatureLink> feature_link(const std::string&, const WorkerSecurity&) override {
    return nullptr;
  }
  Result<std::unique_ptr<WorkerListener>> listen(const std::string&, int, const WorkerSecurity&,
                                                 WorkerCalled&) override {
    return unsupported("nobody calls");
  }
  int cancelled = 0;
};

worker::Output empty_output(uint64_t attempt) {
  worker::Output piece;
  piece.set_attempt(attempt);
  piece.set_row(255);
  return piece;
}

// Each piece without data was free, and took 4 KiB of memory.
TEST(SessionLimits, OutputsWithoutDataEndTheSession) {
  SilentNetwork network;
  const auto session = std::make_shared<ServerSession>(1, "w:1", network, WorkerSecurity(), size_t{1} << 20,
                                                       ServerSession::Events());
  uint64_t attempts = 0;
  while (attempts < 10'000 && session->keep(empty_output(attempts))) ++attempts;
  EXPECT_LT(attempts, 100u);
  EXPECT_EQ(network.cancelled, 1);
}

TEST(SessionLimits, TakenOutputsGiveTheirRoomBack) {
  SilentNetwork network;
  const auto session = std::make_shared<ServerSession>(1, "w:1", network, WorkerSecurity(), size_t{1} << 20,
                                                       ServerSession::Events());
  for (uint64_t attempt = 0; attempt < 1000; ++attempt) {
    auto piece = empty_output(attempt);
    piece.set_data("abc");
    ASSERT_TRUE(session->keep(piece));
    const auto rows = session->take_outputs(attempt);
    ASSERT_EQ(rows.size(), 256u);
    EXPECT_EQ(rows.back().bytes, 3u);
  }
  EXPECT_EQ(network.cancelled, 0);
}

// A clock that is not one: the difference to the server's did not fit in 64 bits.
TEST(SessionLimits, AnyTimeOfAWorkersClockHasAnOffset) {
  PingTimes pings;
  pings.sent(1, 1000);
  pings.answered(1, 3000, 1'700'000'000'000'000'000, INT64_MIN);
  EXPECT_EQ(pings.estimate().offset_ns, INT64_MIN);
  pings.sent(2, 1000);
  pings.answered(2, 2000, -2000, INT64_MAX);
  EXPECT_EQ(pings.estimate().offset_ns, INT64_MAX);
}

}  // namespace
}  // namespace heddle
