// The stream runtime on the host: order, events between streams, errors, memory, graphs. Clean under the
// thread sanitizer.
#include "heddle/runtime/stream_runtime.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

namespace heddle {
namespace {

struct Fixture {
  std::shared_ptr<StreamRuntime> runtime = make_host_runtime();
  std::unique_ptr<DeviceStream> a = runtime->make_stream().value(), b = runtime->make_stream().value();
  std::unique_ptr<DeviceEvent> event = runtime->make_event().value();
};

Status nothing() { return {}; }

TEST(StreamRuntime, AStreamWorksInOrderAndItsCallsReturnBeforeTheWorkIsDone) {
  Fixture f;
  std::atomic<bool> go{false};
  std::vector<int> order;
  ASSERT_TRUE(f.a->compute([&] {
                   while (!go) std::this_thread::yield();
                   return nothing();
                 })
                  .ok());
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(f.a->compute([&order, i] {
                     order.push_back(i);
                     return nothing();
                   })
                    .ok());
  }
  ASSERT_TRUE(f.a->record(*f.event).ok());
  EXPECT_FALSE(f.event->done().value());
  go = true;
  ASSERT_TRUE(f.event->synchronize().ok());
  EXPECT_TRUE(f.event->done().value());
  ASSERT_EQ(order.size(), 50u);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

TEST(StreamRuntime, AStreamWaitsForTheLastRecordBeforeTheWaitAndForNoLaterOne) {
  Fixture f;
  std::atomic<int> stage{0};
  std::atomic<bool> hold{true};
  ASSERT_TRUE(f.a->compute([&] {
                   stage = 1;
                   return nothing();
                 })
                  .ok());
  ASSERT_TRUE(f.a->record(*f.event).ok());
  ASSERT_TRUE(f.b->wait(*f.event).ok());
  std::atomic<int> seen{-1};
  ASSERT_TRUE(f.b->compute([&] {
                   seen = stage.load();
                   return nothing();
                 })
                  .ok());
  // The waiter needs only the first record; the second is not reached before it ends.
  ASSERT_TRUE(f.a->compute([&] {
                   while (hold) std::this_thread::yield();
                   return nothing();
                 })
                  .ok());
  ASSERT_TRUE(f.a->record(*f.event).ok());
  ASSERT_TRUE(f.b->synchronize().ok());
  EXPECT_EQ(seen, 1);
  hold = false;
  ASSERT_TRUE(f.a->synchronize().ok());
}

TEST(StreamRuntime, AnEventThatWasNeverRecordedHoldsNobody) {
  Fixture f;
  EXPECT_TRUE(f.event->synchronize().ok());
  ASSERT_TRUE(f.a->wait(*f.event).ok());
  EXPECT_TRUE(f.a->synchronize().ok());
}

TEST(StreamRuntime, CopiesGoThroughDeviceMemoryAndBetweenDevices) {
  Fixture f;
  const auto other = make_host_runtime({.name = "other"});
  ASSERT_TRUE(other->reaches(*f.runtime));
  EXPECT_FALSE(make_host_runtime({.name = "lonely", .peers = false})->reaches(*f.runtime));
  auto pinned = f.runtime->allocate_pinned(1000).value();
  auto here = f.runtime->allocate(1000).value();
  auto there = other->allocate(1000).value();
  auto back = other->allocate_pinned(1000).value();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(here.get()) % kDeviceAlignment, 0u);
  for (int i = 0; i < 1000; ++i) pinned.get()[i] = static_cast<std::byte>(i * 7);
  const auto stream = other->make_stream().value();
  ASSERT_TRUE(f.a->copy(CopyKind::kHostToDevice, here.get(), pinned.get(), 1000).ok());
  ASSERT_TRUE(f.a->record(*f.event).ok());
  ASSERT_TRUE(stream->wait(*f.event).ok());
  ASSERT_TRUE(stream->copy_peer(there.get(), *f.runtime, here.get(), 1000).ok());
  ASSERT_TRUE(stream->copy(CopyKind::kDeviceToHost, back.get(), there.get(), 1000).ok());
  ASSERT_TRUE(stream->synchronize().ok());
  EXPECT_EQ(std::memcmp(back.get(), pinned.get(), 1000), 0);
}

TEST(StreamRuntime, AnErrorShowsAtTheNextSynchronisationAndPassesOverWorkUntilItIsDrained) {
  Fixture f;
  std::atomic<int> done{0};
  const auto count = [&] {
    ++done;
    return nothing();
  };
  ASSERT_TRUE(f.a->compute([] { return Status(Error(Code::kInternal, "broken kernel")); }).ok());
  ASSERT_TRUE(f.a->compute(count).ok());
  ASSERT_TRUE(f.a->record(*f.event).ok());
  const Status shown = f.event->synchronize();
  ASSERT_FALSE(shown.ok());
  EXPECT_EQ(shown.error().message(), "broken kernel");
  EXPECT_EQ(done, 0);
  EXPECT_FALSE(f.runtime->drain().ok());
  EXPECT_TRUE(f.runtime->drain().ok());
  ASSERT_TRUE(f.a->compute(count).ok());
  EXPECT_TRUE(f.a->synchronize().ok());
  EXPECT_EQ(done, 1);
}

TEST(StreamRuntime, WhatWorkThrowsBecomesAnError) {
  Fixture f;
  ASSERT_TRUE(f.a->compute([]() -> Status { throw std::runtime_error("thrown"); }).ok());
  const Status shown = f.a->synchronize();
  ASSERT_FALSE(shown.ok());
  EXPECT_NE(shown.error().to_string().find("thrown"), std::string::npos);
}

TEST(StreamRuntime, MemoryIsLimitedAndCountsUntilItsLastHolderLetsItGo) {
  const auto runtime = make_host_runtime({.name = "small", .memory_bytes = 4096});
  auto first = runtime->allocate(3000);
  ASSERT_TRUE(first.ok());
  const auto too_much = runtime->allocate(2000);
  ASSERT_FALSE(too_much.ok());
  EXPECT_EQ(too_much.error().code(), Code::kInfeasible);
  EXPECT_NE(too_much.error().message().find("'small'"), std::string::npos) << too_much.error().message();
  std::shared_ptr<std::byte[]> held = *first;
  first = Error(Code::kInternal, "");
  EXPECT_FALSE(runtime->allocate(2000).ok());
  held.reset();
  EXPECT_TRUE(runtime->allocate(2000).ok());
}

TEST(StreamRuntime, ACapturedGraphDoesNothingUntilItIsLaunchedAndThenEachTime) {
  Fixture f;
  int runs = 0;
  ASSERT_TRUE(f.a->begin_capture().ok());
  ASSERT_TRUE(f.a->compute([&] {
                   ++runs;
                   return nothing();
                 })
                  .ok());
  EXPECT_FALSE(f.a->record(*f.event).ok());
  EXPECT_FALSE(f.a->begin_capture().ok());
  const auto graph = f.a->end_capture();
  ASSERT_TRUE(graph.ok());
  ASSERT_TRUE(f.a->synchronize().ok());
  EXPECT_EQ(runs, 0);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(f.a->launch(**graph).ok());
  ASSERT_TRUE(f.a->synchronize().ok());
  EXPECT_EQ(runs, 3);
  EXPECT_FALSE(f.a->end_capture().ok());
}

TEST(StreamRuntime, TheTimeBetweenEventsIsThatOfTheWorkBetweenThem) {
  Fixture f;
  const auto end = f.runtime->make_event().value();
  ASSERT_TRUE(f.a->record(*f.event).ok());
  ASSERT_TRUE(f.a->record(*end).ok());
  ASSERT_TRUE(f.a->synchronize().ok());
  EXPECT_GE(f.runtime->elapsed_us(*f.event, *end).value(), 0);
  EXPECT_LE(f.runtime->elapsed_us(*end, *f.event).value(), 0);
}

}  // namespace
}  // namespace heddle
