// The folder of the servers' state on a host that crashes.
#include "simulation/simulated_files.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "heddle/base/sync.h"
#include "standby/shared_store.h"

namespace heddle {
namespace {

constexpr int64_t kMillisecond = 1'000'000;

// Writes on, in a process that crashes with its host at a time that the seed chooses; then reads what is left.
void crash_once(uint64_t seed, const std::function<void(FileCalls&)>& write,
                const std::function<void(FileCalls&)>& read) {
  Simulation simulation({.seed = seed});
  const auto status = simulation.run([&] {
    SimulatedDrive drive;
    SimulatedFiles before(drive), after(drive);
    drive.failures = simulation.random().chance(.3) ? .2 : 0;
    const auto process = simulation.new_process("writer");
    simulation.start(process, [&] { write(before); });
    sleep_ns(simulation.random().between(0, 30) * kMillisecond);
    simulation.freeze(process, INT64_MAX);
    before.crash();
    drive.crash();
    drive.failures = 0;
    read(after);
    simulation.freeze(process, 0);
    while (simulation.threads() > 1) sleep_ns(kMillisecond);
  });
  EXPECT_TRUE(status.ok()) << "seed " << seed << ": " << status.error().to_string();
}

std::string value_of(uint64_t revision) { return std::string(100, 'v') + std::to_string(revision); }

TEST(SimulatedFiles, AFolderKeepsWhatItHasConfirmed) {
  uint64_t kept = 0, unconfirmed = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    uint64_t confirmed = 0;
    const auto write = [&](FileCalls& files) {
      auto store = folder_store("/state", files);
      for (int i = 0; i < 20 && !store.ok(); ++i) store = folder_store("/state", files);
      if (!store.ok()) return;
      for (uint64_t at = 0; at < 40;) {
        const auto set = (*store)->set("k", value_of(at + 1), at);
        if (set.ok() && *set) confirmed = **set;
        const auto there = (*store)->get("k");
        if (!there.ok()) return;  // this host has crashed
        at = there->revision;
      }
    };
    crash_once(seed, write, [&](FileCalls& files) {
      const auto store = folder_store("/state", files).value();
      const auto entry = store->get("k");
      ASSERT_TRUE(entry.ok()) << "seed " << seed << ": " << entry.error().to_string();
      EXPECT_GE(entry->revision, confirmed) << "seed " << seed;
      EXPECT_EQ(entry->value, entry->revision > 0 ? value_of(entry->revision) : "") << "seed " << seed;
      kept += entry->revision;
      unconfirmed += entry->revision > confirmed;
      // A file that a write has left behind is in nobody's way.
      EXPECT_TRUE(store->set("k", "next", entry->revision).value().has_value()) << "seed " << seed;
    });
  }
  EXPECT_GT(kept, 500U);
  EXPECT_GT(unconfirmed, 0U);
}

// One of three servers stands still at a time that the seed chooses, perhaps between its look at the folder and its
// change. The others go on meanwhile, and no two of all changes are confirmed as the same revision.
TEST(SimulatedFiles, AServerThatStandsStillHoldsUpNobodyAndOverwritesNothing) {
  constexpr uint64_t kEach = 40;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Simulation simulation({.seed = seed});
    const auto status = simulation.run([&] {
      SimulatedDrive drive;
      std::map<uint64_t, std::string> confirmed;
      std::vector<uint64_t> done(3);
      std::vector<Simulation::Process> processes;
      for (size_t w = 0; w < done.size(); ++w) {
        processes.push_back(simulation.new_process("writer" + std::to_string(w)));
        simulation.start(processes.back(), [&, w] {
          SimulatedFiles files(drive);
          const auto store = folder_store("/state", files).value();
          while (done[w] < kEach) {
            const auto there = store->get("k").value();
            const std::string value = std::to_string(w) + " " + std::to_string(done[w]);
            const auto set = store->set("k", value, there.revision).value();
            if (!set) continue;
            EXPECT_TRUE(confirmed.emplace(*set, value).second) << "seed " << seed << ", revision " << *set;
            ++done[w];
          }
        });
      }
      sleep_ns(simulation.random().between(0, 30) * kMillisecond);
      simulation.freeze(processes[0], INT64_MAX);
      while (done[1] + done[2] < 2 * kEach) sleep_ns(kMillisecond);
      simulation.freeze(processes[0], 0);
      while (simulation.threads() > 1) sleep_ns(kMillisecond);
      SimulatedFiles files(drive);
      const auto last = folder_store("/state", files).value()->get("k").value();
      EXPECT_EQ(confirmed.rbegin()->first, last.revision) << "seed " << seed;
      EXPECT_EQ(confirmed.rbegin()->second, last.value) << "seed " << seed;
    });
    EXPECT_TRUE(status.ok()) << "seed " << seed << ": " << status.error().to_string();
  }
}

// Without a sync, each of the three can be left: the old content, the new one, and a part.
TEST(SimulatedFiles, WhatIsNotSyncedMayBeLostOrTorn) {
  uint64_t old = 0, whole = 0, torn = 0, gone = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed)
    crash_once(
        seed,
        [](FileCalls& files) {
          (void)files.make_folder("/f");
          const int file = files.create("/f/a", std::nullopt);
          if (file >= 0) files.write(file, "content");
        },
        [&](FileCalls& files) {
          const auto read = files.read("/f/a", 100);
          if (!read.ok()) {
            ++gone;
          } else if (read->empty()) {
            ++old;
          } else {
            ++(*read == "content" ? whole : torn);
          }
        });
  EXPECT_GT(old, 0U);
  EXPECT_GT(whole, 0U);
  EXPECT_GT(torn, 0U);
  EXPECT_GT(gone, 0U);
}

}  // namespace
}  // namespace heddle
