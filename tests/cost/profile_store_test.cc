#include "heddle/cost/profile_store.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>

#include "heddle/base/random.h"

namespace heddle {
namespace {

class ProfileStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "heddle_store_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name = "p.sqlite") const { return (folder_ / name).string(); }
  std::shared_ptr<ProfileStore> store(const std::string& fingerprint = "machine") const {
    auto s = ProfileStore::open(path(), fingerprint);
    EXPECT_TRUE(s.ok()) << s.error().to_string();
    return s.ok() ? *s : nullptr;
  }
  std::string open_error() const {
    const auto s = ProfileStore::open(path(), "machine");
    return s.ok() ? "opened" : s.error().to_string();
  }
  void sql(const char* statement) const {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path().c_str(), &db), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(db, statement, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
    sqlite3_close(db);
  }
  std::filesystem::path folder_;
};

ProfileRecord record(uint64_t signature, int batch = 1, double us = 10, double share = 1) {
  ProfileRecord r;
  r.key = {.signature = signature, .target = "openvino:CPU:2", .batch = batch, .share = share};
  r.label = "Convolution+Relu";
  r.median_us = us;
  r.rel_spread = 0.02;
  r.runs = 30;
  r.taken_at = "2026-01-02T03:04:05Z";
  return r;
}

TEST(ProfileRecord, OnlyADisturbedOneIsWorthRepeatingAndNotAtOnce) {
  constexpr int64_t kTaken = 1767323045;  // 2026-01-02T03:04:05Z
  ProfileRecord r = record(1);
  EXPECT_FALSE(worth_repeating(r, kTaken + 1'000'000)) << "a calm measurement stays";
  r.rel_spread = 0.21;
  EXPECT_FALSE(worth_repeating(r, kTaken + 600));
  EXPECT_TRUE(worth_repeating(r, kTaken + 601));
  r.taken_at = "yesterday";
  EXPECT_TRUE(worth_repeating(r, kTaken));
}

TEST_F(ProfileStoreTest, WhatIsPutIsFoundAgainAlsoAfterReopening) {
  const ProfileRecord r = record(0xfedcba9876543210ULL, 4, 12.345678901234567, 0.25);
  ASSERT_TRUE(store()->put(r).ok());
  const auto found = store()->find(r.key).value();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->key.signature, r.key.signature);
  EXPECT_EQ(found->key.target, r.key.target);
  EXPECT_EQ(found->key.batch, 4);
  EXPECT_EQ(found->key.share, 0.25);
  EXPECT_EQ(found->label, r.label);
  EXPECT_EQ(found->median_us, r.median_us);
  EXPECT_EQ(found->rel_spread, r.rel_spread);
  EXPECT_EQ(found->runs, 30);
  EXPECT_EQ(found->taken_at, r.taken_at);
}

TEST_F(ProfileStoreTest, EveryPartOfTheKeyCounts) {
  const auto s = store();
  ASSERT_TRUE(s->put(record(1)).ok());
  EXPECT_FALSE(s->find(record(2).key).value().has_value());
  EXPECT_FALSE(s->find(record(1, 2).key).value().has_value());
  EXPECT_FALSE(s->find(record(1, 1, 10, 0.5).key).value().has_value());
  ProfileKey other = record(1).key;
  other.target = "openvino:CPU:1";
  EXPECT_FALSE(s->find(other).value().has_value());
}

TEST_F(ProfileStoreTest, AnotherMachinesMeasurementsAreNotSeenAndNotLost) {
  ASSERT_TRUE(store("a")->put(record(1, 1, 10)).ok());
  EXPECT_FALSE(store("b")->find(record(1).key).value().has_value());
  ASSERT_TRUE(store("b")->put(record(1, 1, 20)).ok());
  EXPECT_EQ(store("a")->find(record(1).key).value()->median_us, 10);
  EXPECT_EQ(store("b")->all().value().size(), 1U);
}

TEST_F(ProfileStoreTest, ASecondPutReplacesTheFirst) {
  const auto s = store();
  ASSERT_TRUE(s->put(record(1, 1, 10)).ok());
  ASSERT_TRUE(s->put(record(1, 1, 11)).ok());
  EXPECT_EQ(s->find(record(1).key).value()->median_us, 11);
  EXPECT_EQ(s->all().value().size(), 1U);
}

TEST_F(ProfileStoreTest, BatchesComeInAscendingOrder) {
  const auto s = store();
  for (int batch : {16, 1, 4, 128}) ASSERT_TRUE(s->put(record(1, batch)).ok());
  ASSERT_TRUE(s->put(record(1, 2, 10, 0.5)).ok());
  std::vector<int> batches;
  const auto records = s->find_segment(1, "openvino:CPU:2").value();
  for (const auto& r : records) batches.push_back(r.key.batch);
  EXPECT_EQ(batches, (std::vector<int>{2, 1, 4, 16, 128}));  // those of share 0.5 first
}

TEST_F(ProfileStoreTest, ImpossibleMeasurementsAreRefused) {
  const auto s = store();
  EXPECT_FALSE(s->put(record(1, 1, std::numeric_limits<double>::quiet_NaN())).ok());
  EXPECT_FALSE(s->put(record(1, 1, -1)).ok());
  EXPECT_FALSE(s->put(record(1, 0)).ok());
  EXPECT_FALSE(s->put(record(1, 1, 1, 1.5)).ok());
  EXPECT_TRUE(s->all().value().empty());
}

TEST_F(ProfileStoreTest, AMissingTimeStampIsSetToNow) {
  const auto s = store();
  ProfileRecord r = record(1);
  r.taken_at.clear();
  ASSERT_TRUE(s->put(r).ok());
  EXPECT_EQ(s->find(r.key).value()->taken_at.size(), std::string("2026-01-02T03:04:05Z").size());
}

TEST_F(ProfileStoreTest, TheFolderIsCreated) {
  EXPECT_TRUE(ProfileStore::open(path("a/b/c.sqlite"), "m").ok());
}

TEST_F(ProfileStoreTest, FilesThatAreNoStoreAreRefusedByNameAndLeftAlone) {
  const std::string text =
      "this is a text file and it is long enough to be read as the header of a database file, "
      "which needs a hundred bytes";
  std::ofstream(path()) << text;
  EXPECT_EQ(
      open_error(),
      path() +
          ": is no profile store (not an SQLite file); move the file away or name another profile store");
  std::ifstream in(path());
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), text);
}

TEST_F(ProfileStoreTest, AnotherProgramsDatabaseIsRefused) {
  sql("CREATE TABLE t (x)");
  EXPECT_EQ(open_error(),
            path() +
                ": this SQLite file is no profile store; move the file away or name another profile store, "
                "and it is measured anew");
}

TEST_F(ProfileStoreTest, ANewerVersionIsRefused) {
  store();
  sql("PRAGMA user_version = 7");
  EXPECT_EQ(open_error(),
            path() +
                ": the profile store has version 7, this program reads up to 1; use a newer program or name "
                "another profile store");
}

TEST_F(ProfileStoreTest, AFolderOrAnUnwritablePlaceIsAnError) {
  EXPECT_NE(ProfileStore::open(folder_.string(), "m").error().to_string().find("is a folder"),
            std::string::npos);
  std::ofstream(path("file")) << "x";
  EXPECT_FALSE(ProfileStore::open(path("file") + "/p.sqlite", "m").ok());
  EXPECT_FALSE(ProfileStore::open("", "m").ok());
}

TEST_F(ProfileStoreTest, ImpossibleRecordsInTheFileAreErrorsNotCosts) {
  ASSERT_TRUE(store()->put(record(1)).ok());
  sql("UPDATE profile SET median_us = -5");
  const auto found = store()->find(record(1).key);
  ASSERT_FALSE(found.ok());
  EXPECT_NE(found.error().to_string().find(path()), std::string::npos);
}

TEST_F(ProfileStoreTest, DamagedFilesAreErrorsOrReadRightButNeverCrash) {
  {
    const auto s = store();
    for (uint64_t i = 0; i < 300; ++i) ASSERT_TRUE(s->put(record(i, 1, 10)).ok());
  }
  std::ifstream in(path(), std::ios::binary);
  const std::string good(std::istreambuf_iterator<char>(in), {});
  ASSERT_GT(good.size(), 8192U);
  Random rng(5);
  int refused = 0;
  for (int round = 0; round < 60; ++round) {
    std::string bad = good;
    if (round % 3 == 0) bad.resize(rng.below(bad.size()));
    for (int i = 0; i < 40 && !bad.empty(); ++i)
      bad[rng.below(bad.size())] = static_cast<char>(rng.below(256));
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(path() + suffix);
    std::ofstream(path(), std::ios::binary) << bad;
    const auto s = ProfileStore::open(path(), "machine");
    if (!s.ok()) {
      EXPECT_NE(s.error().to_string().find(path()), std::string::npos);
      ++refused;
      continue;
    }
    if (!(*s)->all().ok()) ++refused;
    (void)(*s)->put(record(1000)).ok();
  }
  EXPECT_GT(refused, 0);
}

// A profile that is killed keeps what it had: everything whose put had returned.
TEST_F(ProfileStoreTest, AKilledWriterLosesNothingThatItHadPut) {
  int channel[2];
  ASSERT_EQ(pipe(channel), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto s = ProfileStore::open(path(), "machine");
    if (!s.ok()) _exit(1);
    for (uint64_t i = 0;; ++i) {
      if (!(*s)->put(record(i)).ok()) _exit(1);
      if (write(channel[1], &i, sizeof i) != sizeof i) _exit(1);
    }
  }
  close(channel[1]);
  uint64_t last = 0;
  for (int i = 0; i < 25; ++i)
    ASSERT_EQ(read(channel[0], &last, sizeof last), static_cast<ssize_t>(sizeof last));
  ASSERT_EQ(kill(child, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  while (read(channel[0], &last, sizeof last) == static_cast<ssize_t>(sizeof last)) {
  }
  close(channel[0]);
  const auto s = store();
  for (uint64_t i = 0; i <= last; ++i) EXPECT_TRUE(s->find(record(i).key).value().has_value()) << i;
  EXPECT_TRUE(s->put(record(1'000'000)).ok());
}

TEST_F(ProfileStoreTest, ManyThreadsAndConnectionsPutAtOnce) {
  const auto shared = store();
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const auto own = t % 2 == 0 ? shared : ProfileStore::open(path(), "machine").value();
      for (uint64_t i = 0; i < 25; ++i) {
        if (!own->put(record(t * 1000 + i)).ok()) ++failures;
        if (!own->find(record(t * 1000 + i).key).ok()) ++failures;
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(shared->all().value().size(), 100U);
}

TEST_F(ProfileStoreTest, ManyProcessesCreateOneFileAtOnce) {
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto s = ProfileStore::open(path(), "machine");
      _exit(s.ok() && (*s)->put(record(static_cast<uint64_t>(i))).ok() ? 0 : 1);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  EXPECT_EQ(store()->all().value().size(), 4U);
}

TEST_F(ProfileStoreTest, TheDefaultPathFollowsTheEnvironment) {
  setenv("HEDDLE_PROFILE_STORE", "/x/y.sqlite", 1);
  EXPECT_EQ(ProfileStore::default_path(), "/x/y.sqlite");
  unsetenv("HEDDLE_PROFILE_STORE");
  setenv("XDG_CACHE_HOME", "/cache", 1);
  EXPECT_EQ(ProfileStore::default_path(), "/cache/heddle/profiles.sqlite");
  setenv("XDG_CACHE_HOME", "relative", 1);
  setenv("HOME", "/home/user", 1);
  EXPECT_EQ(ProfileStore::default_path(), "/home/user/.cache/heddle/profiles.sqlite");
}

}  // namespace
}  // namespace heddle
