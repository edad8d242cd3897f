// Parts of the CUDA backend that need no CUDA: memory between ops, graphs of repeated work, names of devices.
#include "streams/workspace.h"

#include <gtest/gtest.h>

#include <set>

#include "heddle/base/random.h"
#include "streams/accelerator_name.h"
#include "streams/repeated_run.h"

namespace heddle {
namespace {

struct Source {
  std::shared_ptr<StreamRuntime> runtime = make_host_runtime({.name = "device", .memory_bytes = 64 << 20});
  std::vector<int64_t> blocks;  // their sizes
  Workspace::Source source() {
    return [this](int64_t bytes) {
      blocks.push_back(bytes);
      return runtime->allocate(bytes);
    };
  }
};

TEST(Workspace, WhatWasReservedServesTheSameRequestsForEverFromOneBlock) {
  Source source;
  Workspace workspace(source.source());
  ASSERT_TRUE(workspace.reserve(4096).ok());
  for (int round = 0; round < 100; ++round) {
    auto a = workspace.take(1000), b = workspace.take(2048);
    ASSERT_TRUE(a.ok() && b.ok());
    EXPECT_TRUE(workspace.give_back(*a));
    auto c = workspace.take(1024);
    ASSERT_TRUE(c.ok());
    EXPECT_TRUE(workspace.give_back(*b));
    EXPECT_TRUE(workspace.give_back(*c));
  }
  EXPECT_EQ(source.blocks, std::vector<int64_t>{4096});
}

TEST(Workspace, PartsAreAlignedApartAndWholeAgainOnceAllAreGivenBack) {
  Random random(7);
  Source source;
  Workspace workspace(source.source());
  ASSERT_TRUE(workspace.reserve(1 << 20).ok());
  std::map<std::byte*, int64_t> used;
  for (int i = 0; i < 5000; ++i) {
    if (!used.empty() && random.chance(0.5)) {
      auto it = std::next(used.begin(), static_cast<std::ptrdiff_t>(random.below(used.size())));
      ASSERT_TRUE(workspace.give_back(it->first));
      used.erase(it);
      continue;
    }
    const auto bytes = static_cast<int64_t>(random.below(5000));
    const auto part = workspace.take(bytes);
    ASSERT_TRUE(part.ok());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(*part) % kDeviceAlignment, 0u);
    const auto after = used.lower_bound(*part);
    if (after != used.end()) {
      ASSERT_GE(after->first - *part, bytes);
    }
    if (after != used.begin()) {
      ASSERT_LE(std::prev(after)->first + std::prev(after)->second, *part);
    }
    used[*part] = bytes;
  }
  for (const auto& [part, bytes] : used) ASSERT_TRUE(workspace.give_back(part));
  const size_t blocks = source.blocks.size();
  ASSERT_TRUE(workspace.take(1 << 20).ok());
  EXPECT_EQ(source.blocks.size(), blocks) << "the first block is in one piece again";
}

TEST(Workspace, WhatWasNotReservedTakesAnotherBlockAndWhatTheDeviceLacksIsAnError) {
  Source source;
  Workspace workspace(source.source());
  ASSERT_TRUE(workspace.reserve(1024).ok());
  ASSERT_TRUE(workspace.reserve(512).ok());
  EXPECT_EQ(source.blocks.size(), 1u);
  ASSERT_TRUE(workspace.take(3 << 20).ok());
  EXPECT_EQ(source.blocks.size(), 2u);
  const auto too_much = workspace.take(int64_t{100} << 20);
  ASSERT_FALSE(too_much.ok());
  EXPECT_EQ(too_much.error().code(), Code::kInfeasible);
  std::byte elsewhere{};
  EXPECT_FALSE(workspace.give_back(&elsewhere));
}

TEST(RepeatedRun, TheThirdRunIsCapturedAndEveryRunDoesTheWorkOnce) {
  const auto runtime = make_host_runtime();
  const auto stream = runtime->make_stream().value();
  RepeatedRun repeated;
  int runs = 0;
  const auto work = [&]() -> Status {
    ++runs;
    return {};
  };
  for (int i = 1; i <= 6; ++i) {
    ASSERT_TRUE(repeated.run(*stream, work).ok());
    ASSERT_TRUE(stream->synchronize().ok());
    EXPECT_EQ(runs, i);
    EXPECT_EQ(repeated.captured(), i >= 3);
  }
  repeated.forget();
  EXPECT_FALSE(repeated.captured());
  ASSERT_TRUE(repeated.run(*stream, work).ok());
  ASSERT_TRUE(stream->synchronize().ok());
  EXPECT_EQ(runs, 7);
}

// A stream that cannot be captured, like CUDA's for work that waits for its own results.
class Uncapturable final : public DeviceStream {
 public:
  Status record(DeviceEvent&) override { return {}; }
  Status wait(const DeviceEvent&) override { return {}; }
  Status copy(CopyKind, std::byte*, const std::byte*, int64_t) override { return {}; }
  Status copy_peer(std::byte*, const StreamRuntime&, const std::byte*, int64_t) override { return {}; }
  Status compute(std::function<Status()> work) override {
    if (capturing_) return Error(Code::kUnsupported, "operation not permitted when stream is capturing");
    return work();
  }
  Status begin_capture() override {
    ++captures;
    capturing_ = true;
    return {};
  }
  Result<std::unique_ptr<DeviceGraph>> end_capture() override {
    capturing_ = false;
    return Error(Code::kUnsupported, "the capture was invalidated");
  }
  Status launch(DeviceGraph&) override { return {}; }
  Status synchronize() override { return {}; }
  int captures = 0;

 private:
  bool capturing_ = false;
};

TEST(RepeatedRun, WhatCannotBeCapturedIsTriedOnceAndGoesOnAsItIs) {
  Uncapturable stream;
  RepeatedRun repeated;
  int runs = 0;
  for (int i = 1; i <= 6; ++i) {
    ASSERT_TRUE(repeated
                    .run(stream,
                         [&]() -> Status {
                           ++runs;
                           return {};
                         })
                    .ok());
    EXPECT_EQ(runs, i);
  }
  EXPECT_EQ(stream.captures, 1);
  EXPECT_FALSE(repeated.captured());
}

TEST(AcceleratorName, DevicesAndTheirPartsHaveNames) {
  const auto whole = parse_accelerator_name("cuda:3");
  ASSERT_TRUE(whole.ok());
  EXPECT_TRUE(whole->cuda);
  EXPECT_EQ(whole->index, 3);
  EXPECT_EQ(whole->of, 0);
  for (const char* name : {"cuda:0/2-8/8", "cpu/2-8/8"}) {
    const auto part = parse_accelerator_name(name);
    ASSERT_TRUE(part.ok()) << name;
    EXPECT_EQ(part->cuda, name[1] == 'u');
    EXPECT_EQ(part->first, 2);
    EXPECT_EQ(part->last, 8);
    EXPECT_EQ(part->of, 8);
    EXPECT_EQ(accelerator_name(*part), name);
  }
  EXPECT_EQ(accelerator_name(*parse_accelerator_name("")), "cpu");
  EXPECT_EQ(accelerator_name(*whole), "cuda:3");
  for (const char* wrong :
       {"cuda", "cuda:", "cuda:x", "cuda:-1", "cuda:0/", "cuda:0/2-1/8", "cuda:0/0-9/8", "cuda:0/0-2/8/",
        "cuda:0 ", "gpu:0", "cuda:0/1-1/4", "cuda:99999999999", "cpu:0", "cpu/", "cpu0", "cpu/0-3/2"}) {
    const auto name = parse_accelerator_name(wrong);
    ASSERT_FALSE(name.ok()) << wrong;
    EXPECT_EQ(name.error().code(), Code::kInvalidInput);
    EXPECT_NE(name.error().message().find("expected 'cuda:0'"), std::string::npos);
  }
}

// In 64ths: the parts of a part are disjoint and cover it.
TEST(AcceleratorName, PartsOfPartsCoverThem) {
  for (const char* text : {"cuda:0", "cpu/1-3/4", "cuda:1/5-8/8"}) {
    const AcceleratorName name = *parse_accelerator_name(text);
    for (int of = 1; of <= most_parts(name); ++of) {
      int64_t at = int64_t{name.first} * of;
      for (int i = 0; i < of; ++i) {
        const AcceleratorName part = part_of(name, i, of);
        ASSERT_TRUE(parse_accelerator_name(accelerator_name(part)).ok()) << accelerator_name(part);
        if (of == 1) continue;
        EXPECT_EQ(part.first, at);
        at = part.last;
        EXPECT_EQ(part.of, std::max(1, name.of) * of);
      }
      if (of > 1) {
        EXPECT_EQ(at, int64_t{name.of == 0 ? 1 : name.last} * of);
      }
    }
  }
}

}  // namespace
}  // namespace heddle
