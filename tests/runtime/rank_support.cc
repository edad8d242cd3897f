#include "rank_support.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "local_transport.h"

namespace heddle::test {

void on_ranks(int ranks, const std::function<void(RankGroup&)>& body, bool device_memory) {
  auto ends = make_local_transports(ranks, device_memory);
  std::vector<std::thread> threads;
  for (auto& end : ends) {
    threads.emplace_back([&body, transport = end.get()] {
      RankGroup group(*transport);
      body(group);
    });
  }
  for (auto& thread : threads) thread.join();
}

std::vector<int> deal(const Problem& problem, int ranks, uint64_t seed) {
  std::vector<int> rank;
  for (size_t d = 0; d < problem.cluster->num_devices(); ++d)
    rank.push_back(static_cast<int>((d * 7 + seed) % static_cast<size_t>(ranks)));
  return rank;
}

RankedPlan ranked_plan(const RankCase& c, uint64_t seed) {
  RandomProblemOptions options;
  options.ops = c.ops;
  options.devices = c.devices;
  options.cores = c.cores;
  options.cpus = c.cpus;
  options.host_hub = c.host_hub;
  options.seed = seed;
  RankedPlan result;
  result.problem = random_problem(options);
  result.plan = random_plan(result.problem, seed);
  result.ranks = c.ranks;
  result.rank_of_device = deal(result.problem, c.ranks, seed);
  result.what = std::to_string(c.ops) + " ops on " + std::to_string(c.devices) + " devices and " +
                std::to_string(c.ranks) + " ranks, seed " + std::to_string(seed);
  return result;
}

int rank_of_output(const RankedPlan& plan, size_t output) {
  const Graph& graph = *plan.problem.graph;
  const OpId producer = graph.tensor(graph.outputs()[output]).producer;
  for (const Segment& s : plan.plan.segments) {
    if (std::binary_search(s.ops.begin(), s.ops.end(), producer))
      return plan.rank_of_device[s.device.index()];
  }
  return 0;
}

std::unique_ptr<Executor> make_executor(RankGroup& group, const RankedPlan& plan, const OpenDevice& open,
                                        int in_flight) {
  ExecutorOptions create;
  create.in_flight = in_flight;
  create.open = open;
  create.ranks = RankOptions{&group, plan.rank_of_device, false};
  auto executor = Executor::create(plan.problem, plan.plan, nullptr, create);
  EXPECT_TRUE(executor.ok()) << executor.error().to_string();
  return executor.ok() ? std::move(executor).value() : nullptr;
}

void expect_intake(RankGroup& group, const RankedPlan& plan, const OpenDevice& open, int in_flight) {
  const auto executor = make_executor(group, plan, open, in_flight);
  ASSERT_NE(executor, nullptr);
  ASSERT_TRUE(executor->open().ok());
  const auto bring_requests = [&](int slot) {
    for (uint64_t i = 1; i <= 5; ++i) {
      const uint64_t input = 100 * static_cast<uint64_t>(slot + 1) + i;
      write_input(executor->inputs(slot), input);
      const Status ran = executor->run_slot(slot);
      ASSERT_TRUE(ran.ok()) << ran.error().to_string();
      ASSERT_EQ(read_outputs(executor->outputs(slot)),
                expected_outputs(plan.problem, plan.plan, executor->lane(slot), input))
          << plan.what;
    }
  };
  std::thread server;
  if (group.rank() == 0) {
    server = std::thread([&] {
      std::vector<std::thread> clients;
      for (int slot = 0; slot < executor->slots(); ++slot) clients.emplace_back(bring_requests, slot);
      for (auto& client : clients) client.join();
      executor->close();
    });
  }
  EXPECT_TRUE(executor->serve_ranks({}).ok());
  if (server.joinable()) server.join();
}

void expect_requests(RankGroup& group, const RankedPlan& plan, const OpenDevice& open, int requests) {
  const auto executor = make_executor(group, plan, open, 1);
  ASSERT_NE(executor, nullptr);
  for (int request = 1; request <= requests; ++request) {
    const uint64_t input = 100 + static_cast<uint64_t>(request);
    write_input(executor->inputs(0), input);
    const auto timing = executor->run();
    ASSERT_TRUE(timing.ok()) << timing.error().to_string();
    const auto views = executor->outputs(0);
    for (size_t i = 0; i < views.size(); ++i) {
      ASSERT_TRUE(
          group.bring_bytes(rank_of_output(plan, i), {views[i].data, static_cast<size_t>(views[i].bytes)})
              .ok());
    }
    if (group.rank() != 0) continue;
    ASSERT_EQ(read_outputs(views), expected_outputs(plan.problem, plan.plan, 0, input)) << plan.what;
  }
}

void expect_streams(RankGroup& group, const RankedPlan& plan, const OpenDevice& open, int in_flight) {
  constexpr int kRequests = 11;
  const auto executor = make_executor(group, plan, open, in_flight);
  ASSERT_NE(executor, nullptr);
  for (const int requests : {kRequests, in_flight - 1}) {
    Gathered got;
    const auto result = executor->run_stream(gathering(*executor, requests, 100, got));
    ASSERT_TRUE(group.agree(result.ok() ? Status() : Status(result.error())).ok()) << plan.what;
    for (int r = 0; r < requests; ++r) {
      const auto request = static_cast<size_t>(r);
      EXPECT_EQ(got.slot[request], r % in_flight);
      const auto expected = expected_outputs(plan.problem, plan.plan, 0, 100 + request);
      for (size_t i = 0; i < expected.size(); ++i) {
        if (rank_of_output(plan, i) != group.rank()) continue;
        EXPECT_EQ(got.outputs[request][i], expected[i]) << plan.what << ", request " << r;
      }
    }
  }
}

}  // namespace heddle::test
