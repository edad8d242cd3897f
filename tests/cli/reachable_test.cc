// Waiting for a NATS server that is not there yet.
#include "serve/reachable.h"

#include <gtest/gtest.h>

namespace heddle::cli {
namespace {

struct Attempts {
  int until_there, made = 0;
  Result<int> operator()() {
    if (++made < until_there) return io_error("no answer");
    return made;
  }
};

TEST(WhenReachable, TriesUntilANatsServerAnswers) {
  Attempts attempts{3};
  const auto made = when_reachable("nats://here:4222", {}, [&] { return attempts(); });
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(*made, 3);
}

TEST(WhenReachable, TriesOnceWhatIsNoNatsServer) {
  Attempts attempts{3};
  EXPECT_EQ(when_reachable("here:4222", {}, [&] { return attempts(); }).error().code(), Code::kIo);
  EXPECT_EQ(attempts.made, 1);
}

TEST(WhenReachable, AnswersWhatNoWaitingMends) {
  int made = 0;
  const auto wrong = when_reachable("nats://here:4222", {}, [&]() -> Result<int> {
    ++made;
    return invalid_input("no such bucket");
  });
  EXPECT_EQ(wrong.error().code(), Code::kInvalidInput);
  EXPECT_EQ(made, 1);
}

TEST(WhenReachable, EndsWhenItIsCancelled) {
  Attempts attempts{1000};
  CancelToken cancel;
  const auto made = when_reachable("nats://here:4222", cancel, [&] {
    if (attempts.made == 1) cancel.cancel();
    return attempts();
  });
  EXPECT_FALSE(made.ok());
  EXPECT_EQ(attempts.made, 2);
}

}  // namespace
}  // namespace heddle::cli
