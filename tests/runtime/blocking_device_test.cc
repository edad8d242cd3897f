// Accelerators with the blocking interface on host memory.
#include "heddle/runtime/blocking_device.h"

#include <gtest/gtest.h>

#include <cstring>

#include "support.h"

namespace heddle {
namespace {

SegmentSpec one_in_one_out() {
  SegmentSpec spec{.name = "segment"};
  spec.inputs = {{"in", DType::kU8, {8}, 8}};
  spec.outputs = {{"out", DType::kU8, {8}, 8}};
  return spec;
}

struct Memory {
  TensorValue in = make_tensor(DType::kU8, {8}).value(), out = make_tensor(DType::kU8, {8}).value();
  uint64_t result() const {
    uint64_t value = 0;
    std::memcpy(&value, out.data.get(), sizeof value);
    return value;
  }
};

TEST(BlockingDevice, InputsGoThereAndOutputsComeBackForEverySlotAndRun) {
  test::AcceleratedBackend accelerated;
  test::HashBackend plain;
  Device device{.name = "gpu"};
  const auto there = accelerated.opener()(device).value();
  const auto here = plain.opener()(device).value();
  auto inner = there->compile(one_in_one_out(), 2);
  ASSERT_TRUE(inner.ok());
  const auto segment = BlockingSegment::make(*there, std::move(inner).value(), 2);
  ASSERT_TRUE(segment.ok()) << segment.error().to_string();
  const auto reference = here->compile(one_in_one_out(), 1).value();
  Memory slots[2], expected;
  for (int slot = 0; slot < 2; ++slot) {
    const TensorView in = slots[slot].in.view(), out = slots[slot].out.view();
    ASSERT_TRUE((*segment)->bind(slot, {&in, 1}, {&out, 1}).ok());
  }
  const TensorView in = expected.in.view(), out = expected.out.view();
  ASSERT_TRUE(reference->bind(0, {&in, 1}, {&out, 1}).ok());
  for (uint64_t value = 1; value <= 6; ++value) {
    Memory& slot = slots[value % 2];
    std::memcpy(slot.in.data.get(), &value, sizeof value);
    std::memcpy(expected.in.data.get(), &value, sizeof value);
    ASSERT_TRUE((*segment)->run(static_cast<int>(value % 2)).ok());
    ASSERT_TRUE(reference->run(0).ok());
    EXPECT_EQ(slot.result(), expected.result());
    EXPECT_NE(slot.result(), 0u);
  }
  EXPECT_GE((*segment)->compute_us(), 0);
}

TEST(BlockingDevice, AnErrorOnTheStreamIsTheRunsAndTheNextRunStartsClean) {
  test::AcceleratedBackend backend;
  bool broken = true;
  backend.hash.hook = [&](const std::string&) -> Status {
    if (broken) return Error(Code::kInternal, "injected");
    return {};
  };
  const auto device = backend.opener()(Device{.name = "gpu"}).value();
  const auto segment =
      BlockingSegment::make(*device, device->compile(one_in_one_out(), 1).value(), 1).value();
  Memory memory;
  const TensorView in = memory.in.view(), out = memory.out.view();
  ASSERT_TRUE(segment->bind(0, {&in, 1}, {&out, 1}).ok());
  const Status failed = segment->run(0);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message(), "injected");
  broken = false;
  EXPECT_TRUE(segment->run(0).ok());
}

TEST(BlockingDevice, ParametersAreReadInPlaceWhereThatIsAskedFor) {
  test::AcceleratedBackend backend;
  const auto device = backend.opener()(Device{.name = "gpu"}).value();
  SegmentSpec spec = one_in_one_out();
  spec.host_access = true;
  const auto segment = BlockingSegment::make(*device, device->compile(spec, 1).value(), 1, true);
  ASSERT_TRUE(segment.ok()) << segment.error().to_string();
  Memory memory;
  const TensorView in = memory.in.view(), out = memory.out.view();
  ASSERT_TRUE((*segment)->bind(0, {&in, 1}, {&out, 1}).ok());
  EXPECT_TRUE((*segment)->run(0).ok());
  EXPECT_TRUE((*segment)->run(0).ok());
  EXPECT_EQ(backend.in_place, 2);
  // The backend rejects parameters at an unexpected address.
  EXPECT_FALSE(BlockingSegment::make(*device, device->compile(spec, 1).value(), 1).ok());
}

TEST(BlockingDevice, ADeviceThatCannotReadHostMemorySaysSo) {
  test::AcceleratedBackend backend;
  backend.mapped = false;
  const auto device = backend.opener()(Device{.name = "gpu"}).value();
  SegmentSpec spec = one_in_one_out();
  spec.host_access = true;
  const auto segment = BlockingSegment::make(*device, device->compile(spec, 1).value(), 1, true);
  ASSERT_FALSE(segment.ok());
  EXPECT_NE(segment.error().to_string().find("cannot read host memory in place"), std::string::npos);
}

}  // namespace
}  // namespace heddle
