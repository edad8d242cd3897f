// A change of what is served while a run takes long: nobody but the change itself waits for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <latch>
#include <mutex>
#include <thread>

#include "data_plane_support.h"
#include "heddle/base/json.h"
#include "heddle/serve/infer_service.h"
#include "load_support.h"

namespace heddle {
namespace {

using testing::HasSubstr;

// Runs until the test lets it end.
class HeldRun final : public DeviceRunner {
 public:
  Status run(std::span<LiveRequest* const>) override {
    begun.count_down();
    end.wait();
    return {};
  }
  std::latch begun{1}, end{1};
};

struct ChangedService {
  ChangedService() { service.serve(generation(held)); }

  static std::unique_ptr<Generation> generation(const std::shared_ptr<DeviceRunner>& runner) {
    const auto deployment = small_deployment(3'600 * kNsPerSecond, {{{1, {1000}, {}}}});
    return payload_generation(deployment, {runner}, 3.6e9);
  }

  std::future<std::string> infer() {
    const auto outcome = std::make_shared<std::promise<std::string>>();
    InferRequest request;
    request.model = "m";
    request.inputs = {{"payload", DType::kU8, {0}, nullptr, 0, nullptr}};
    service.infer(std::move(request), [outcome](const Result<InferResponse>& answer) {
      outcome->set_value(answer.ok() ? "answered" : answer.error().to_string());
    });
    return outcome->get_future();
  }

  // A request whose run has begun.
  std::future<std::string> running() {
    auto outcome = infer();
    held->begun.wait();
    return outcome;
  }
  // Requests one after the other: a change that was begun before them is under way with the last.
  std::vector<std::future<std::string>> infer_for_a_while() {
    std::vector<std::future<std::string>> outcomes;
    for (int i = 0; i < 20; ++i) {
      outcomes.push_back(infer());
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
    }
    return outcomes;
  }

  std::shared_ptr<HeldRun> held = std::make_shared<HeldRun>();
  InferService service;
};

TEST(CutOver, AsksAndNewRequestsDoNotWaitForWhatRuns) {
  ChangedService s;
  auto first = s.running();
  std::thread change([&s] { s.service.serve(ChangedService::generation(nullptr)); });
  std::vector<std::future<std::string>> later;
  for (int i = 0; i < 40; ++i) {
    EXPECT_TRUE(s.service.ready());
    EXPECT_EQ(s.service.models().size(), 1u);
    EXPECT_EQ(s.service.status()["models"].size(), 1u);
    EXPECT_THAT(s.service.metrics(), HasSubstr("heddle"));
    later.push_back(s.infer());
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
  }
  EXPECT_EQ(first.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  s.held->end.count_down();
  change.join();
  EXPECT_EQ(first.get(), "answered");
  for (auto& outcome : later) EXPECT_EQ(outcome.get(), "answered");
}

// Requests of a session come in an order.
TEST(CutOver, ANewerRequestDoesNotOvertakeThoseThatWereHeld) {
  ChangedService s;
  auto running = s.running();
  std::thread change([&s] { s.service.serve(ChangedService::generation(nullptr)); });
  auto held = s.infer_for_a_while();
  std::mutex mutex;
  std::vector<int> order;
  const auto ask = [&](int name, const std::function<void()>& then) {
    InferRequest request;
    request.model = "unknown";  // answered as soon as it begins
    s.service.infer(std::move(request), [&, name, then](const Result<InferResponse>&) {
      {
        const std::lock_guard lock(mutex);
        order.push_back(name);
      }
      then();
    });
  };
  ask(1, [&] { std::thread([&] { ask(3, [] {}); }).join(); });
  ask(2, [] {});
  s.held->end.count_down();
  change.join();
  EXPECT_EQ(running.get(), "answered");
  for (auto& outcome : held) EXPECT_EQ(outcome.get(), "answered");
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(Memory, OfOutputsIsLimitedToThatOfRequestsInFlight) {
  ChangedService s;
  s.service.set_max_memory(7);  // a digest takes 8
  EXPECT_THAT(s.infer().get(), HasSubstr("--max-memory"));
  s.service.set_max_memory(12);
  auto running = s.running();
  EXPECT_THAT(s.infer().get(), HasSubstr("try again later"));
  s.held->end.count_down();
  EXPECT_EQ(running.get(), "answered");
  EXPECT_TRUE(s.service.serve(ChangedService::generation(nullptr)));
  EXPECT_EQ(s.infer().get(), "answered");
}

TEST(CutOver, AStopMeanwhileAnswersEverything) {
  ChangedService s;
  auto first = s.running();
  std::thread change([&s] { EXPECT_FALSE(s.service.serve(ChangedService::generation(nullptr))); });
  auto later = s.infer_for_a_while();
  std::thread stop([&s] { s.service.stop(60); });
  for (auto& outcome : later) EXPECT_THAT(outcome.get(), HasSubstr("the server is stopping"));
  s.held->end.count_down();
  stop.join();
  change.join();
  EXPECT_EQ(first.get(), "answered");
  EXPECT_FALSE(s.service.ready());
  EXPECT_THAT(s.infer().get(), HasSubstr("the server is stopping"));
}

}  // namespace
}  // namespace heddle
