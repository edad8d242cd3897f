// CUDA: what can be said without a device, and, where there is one, real models on it.
#include <gtest/gtest.h>

#include <cstring>

#include "backends/torch/torch_cuda.h"
#include "heddle/runtime/backend.h"
#include "heddle/runtime/copy_profile.h"
#include "torch/support.h"

namespace heddle {
namespace {

Device cuda_device(const std::string& name) {
  Device device;
  device.name = "gpu";
  device.kind = DeviceKind::kGpu;
  device.backend = "torch";
  device.backend_device = name;
  return device;
}

bool cuda_here() { return !local_gpus().gpus.empty(); }

TEST(TorchCuda, ADeviceThatIsNotThereIsAnErrorThatSaysWhatIsMissing) {
  const auto opened = open_device(cuda_device("cuda:999"));
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code(), Code::kUnsupported);
  const std::string text = opened.error().to_string();
  if (cuda_here()) {
    EXPECT_NE(text.find("there is no CUDA device 999"), std::string::npos) << text;
  } else {
    const bool clear = text.find("no CUDA driver") != std::string::npos ||
                       text.find("finds no device") != std::string::npos ||
                       text.find("needs a libtorch with CUDA") != std::string::npos;
    EXPECT_TRUE(clear) << text;
  }
}

TEST(TorchCuda, ACpuIsNoCudaDevice) {
  Device device = cuda_device("cuda:0");
  device.kind = DeviceKind::kCpu;
  const auto opened = open_device(device);
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.error().to_string().find("of the kind gpu"), std::string::npos)
      << opened.error().to_string();
}

// The interface's promises, as tests/runtime/stream_runtime_test.cc has them for the host.
TEST(TorchCuda, CopiesEventsAndGraphsDoOnTheDeviceWhatTheyDoOnTheHost) {
  if (!cuda_here()) GTEST_SKIP() << "no CUDA device here";
  const auto opened = torch_backend::open_cuda("cuda:0");
  ASSERT_TRUE(opened.ok()) << opened.error().to_string();
  StreamRuntime& runtime = **opened;
  constexpr int64_t kBytes = 1 << 20;
  const auto first = runtime.make_stream().value(), second = runtime.make_stream().value();
  const auto start = runtime.make_event().value(), end = runtime.make_event().value();
  const auto pinned = runtime.allocate_pinned(kBytes).value(), back = runtime.allocate_pinned(kBytes).value();
  const auto here = runtime.allocate(kBytes).value(), there = runtime.allocate(kBytes).value();
  std::memset(pinned.get(), 42, kBytes);
  ASSERT_TRUE(first->record(*start).ok());
  ASSERT_TRUE(first->copy(CopyKind::kHostToDevice, here.get(), pinned.get(), kBytes).ok());
  ASSERT_TRUE(first->record(*end).ok());
  ASSERT_TRUE(second->wait(*end).ok());
  ASSERT_TRUE(second->begin_capture().ok());
  ASSERT_TRUE(second->copy(CopyKind::kDeviceToDevice, there.get(), here.get(), kBytes).ok());
  const auto graph = second->end_capture();
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  ASSERT_TRUE(second->launch(**graph).ok());
  ASSERT_TRUE(second->copy(CopyKind::kDeviceToHost, back.get(), there.get(), kBytes).ok());
  ASSERT_TRUE(second->synchronize().ok());
  EXPECT_EQ(std::memcmp(back.get(), pinned.get(), kBytes), 0);
  EXPECT_TRUE(end->done().value());
  EXPECT_GT(runtime.elapsed_us(*start, *end).value(), 0);
  EXPECT_TRUE(runtime.mapped_address(pinned.get()).ok());
  const auto too_much = runtime.allocate(int64_t{1} << 50);
  ASSERT_FALSE(too_much.ok());
  EXPECT_EQ(too_much.error().code(), Code::kInfeasible);
  EXPECT_TRUE(runtime.drain().ok());
}

// Two halves of one GPU: both have ways to the host, and reach each other without it.
TEST(TorchCuda, CopiesOfPartsOfADeviceAreMeasured) {
  if (!cuda_here()) GTEST_SKIP() << "no CUDA device here";
  ClusterBuilder builder("halves");
  const HostId host = builder.add_host({.name = "host"});
  for (const char* part : {"cuda:0/0-1/2", "cuda:0/1-2/2"}) {
    Device device = cuda_device(part);
    device.name = part;
    device.host = host;
    builder.add_device(device);
  }
  const auto cluster = builder.build();
  ASSERT_TRUE(cluster.ok()) << cluster.error().to_string();
  const auto profile = measure_copies(**cluster);
  ASSERT_TRUE(profile.ok()) << profile.error().to_string();
  ASSERT_EQ(profile->routes.size(), 6u);
  for (const CopyRoute& route : profile->routes) {
    EXPECT_TRUE(route.direct);
    EXPECT_GT(route.line.bytes_per_s, 0);
  }
  EXPECT_TRUE(with_measured_links(**cluster, profile->links).ok());
}

}  // namespace
}  // namespace heddle
