// Turns of requests in their sessions: who waits, and what fails with whom.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "protocol/sessions.h"
#include "serve_support.h"

namespace heddle {
namespace {

using testing::HasSubstr;

// What waits, without a model: each request's outcome is written down.
class SessionTurns : public testing::Test {
 protected:
  SessionTurns() {
    auto state = std::make_shared<SessionState>();
    state->tensors.push_back({0, 0, 4, {}});
    state->idle_ns = 60'000'000'000;
    model_.name = "net";
    model_.state = std::move(state);
  }
  Result<std::unique_ptr<SessionTurn>> enter(const std::string& id, bool start = false, bool end = false) {
    WaitingRequest w;
    w.request.id = std::to_string(++came_);
    w.request.session = {id, start, end};
    return sessions_.enter(model_, w);
  }
  static StateTensors any() { return {std::shared_ptr<const std::byte[]>(new std::byte[4])}; }

  ServedModel model_;
  Mutex mutex_;
  std::vector<std::string> failed_;
  std::vector<std::unique_ptr<SessionTurn>> turns_;
  int came_ = 0;
  Sessions sessions_{[this](WaitingRequest w, Result<std::unique_ptr<SessionTurn>> turn) {
    const std::lock_guard lock(mutex_);
    if (turn.ok())
      turns_.push_back(std::move(*turn));
    else
      failed_.push_back(w.request.id + ": " + turn.error().message());
  }};
};

TEST_F(SessionTurns, ThoseBehindAFailedRequestFail) {
  auto first = enter("7", true);
  ASSERT_TRUE(first.ok() && *first);
  (*first)->keep(any());
  first->reset();
  auto second = enter("7");
  ASSERT_TRUE(second.ok() && *second);
  EXPECT_EQ(*enter("7"), nullptr);
  EXPECT_EQ(*enter("7", false, true), nullptr);
  EXPECT_EQ(enter("7").error().code(), Code::kNotFound);  // behind the last request
  EXPECT_EQ(sessions_.counters()["net"].waiting, 2U);
  second->reset();
  ASSERT_EQ(failed_.size(), 2U);
  EXPECT_THAT(failed_[0], HasSubstr("3: model 'net', session 7: the request before this one failed"));
  // The session is as the first request left it.
  auto next = enter("7");
  ASSERT_TRUE(next.ok() && *next);
  EXPECT_EQ((*next)->before().size(), 1U);
}

TEST_F(SessionTurns, AFirstRequestThatFailsLeavesNoSession) {
  enter("7", true)->reset();
  EXPECT_EQ(sessions_.counters()["net"].open, 0U);
  EXPECT_EQ(enter("7").error().code(), Code::kNotFound);
}

TEST_F(SessionTurns, FewWaitBehindOne) {
  sessions_.set_limits({.waiting = 1});
  auto first = enter("7", true);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(*enter("7"), nullptr);
  EXPECT_THAT(enter("7").error().message(), HasSubstr("1 requests of it wait already"));
  (*first)->keep(any());
  first->reset();
  EXPECT_TRUE(eventually([this] {
    const std::lock_guard lock(mutex_);
    return turns_.size() == 1;
  }));
  turns_.clear();
}

TEST_F(SessionTurns, AModelThatGoesEndsItsSessions) {
  auto first = enter("7", true);
  EXPECT_EQ(*enter("7"), nullptr);
  sessions_.retain({});
  ASSERT_EQ(failed_.size(), 1U);
  EXPECT_THAT(failed_[0], HasSubstr("unloaded or loaded again"));
  (*first)->keep(any());  // answered all the same
  first->reset();
  EXPECT_EQ(enter("7").error().code(), Code::kNotFound);
  auto again = enter("7", true);
  EXPECT_TRUE(again.ok() && *again);
}

}  // namespace
}  // namespace heddle
