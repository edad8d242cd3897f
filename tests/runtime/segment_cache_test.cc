// Compiled segments on disk: stored contents are found, damaged files are not, and the size limit holds.
#include "heddle/runtime/segment_cache.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "heddle/base/file.h"

namespace heddle {
namespace {

namespace fs = std::filesystem;

class SegmentCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = (fs::temp_directory_path() / ("heddle-cache-test-" + std::to_string(::getpid()))).string();
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::unique_ptr<SegmentCache> open(int64_t limit = 0) {
    auto cache = SegmentCache::open(folder_, limit);
    EXPECT_TRUE(cache.ok());
    return std::move(cache).value();
  }
  int64_t bytes() const {
    int64_t sum = 0;
    for (const auto& entry : fs::directory_iterator(folder_)) sum += static_cast<int64_t>(entry.file_size());
    return sum;
  }
  std::string only_file() const { return fs::directory_iterator(folder_)->path().string(); }
  std::string folder_;
};

TEST_F(SegmentCacheTest, WhatWasStoredComesBackAndNothingElse) {
  const auto cache = open();
  for (const size_t size : {size_t{0}, size_t{1}, size_t{31}, size_t{32}, size_t{33}, size_t{100'000}}) {
    std::string contents(size, 'x');
    for (size_t i = 0; i < size; ++i) contents[i] = static_cast<char>(i * 37);
    ASSERT_TRUE(cache->store(size, contents).ok());
    const auto entry = cache->find(size);
    ASSERT_TRUE(entry);
    EXPECT_EQ(entry->contents(), contents);
  }
  EXPECT_EQ(cache->find(77), nullptr);
  EXPECT_EQ(fs::status(folder_).permissions() & (fs::perms::group_all | fs::perms::others_all),
            fs::perms::none);
}

TEST_F(SegmentCacheTest, FilesCutShortOrChangedAnywhereAreNotUsed) {
  const auto cache = open();
  const std::string contents = "compiled for a device that is quite here, and long enough for every lane";
  ASSERT_TRUE(cache->store(5, contents).ok());
  const std::string path = only_file();
  const std::string whole = read_file(path).value();
  for (size_t size = 0; size < whole.size(); ++size) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, size);
    EXPECT_EQ(cache->find(5), nullptr) << size;
  }
  constexpr size_t kPadding = 32, kHeader = 64;
  for (size_t at = 0; at < whole.size(); ++at) {
    if (at >= kPadding && at < kHeader) continue;
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    std::ofstream(path, std::ios::binary) << changed;
    EXPECT_EQ(cache->find(5), nullptr) << at;
  }
  std::ofstream(path, std::ios::binary) << whole;
  EXPECT_NE(cache->find(5), nullptr);
}

TEST_F(SegmentCacheTest, TheLeastRecentlyUsedGoFirstWhenTheLimitIsReached) {
  const std::string contents(1000, 'c');
  const auto cache = open(3 * 1064);
  // Use is known by the files' times, whose steps some file systems make coarse.
  const auto age = [&] {
    for (const auto& entry : fs::directory_iterator(folder_))
      fs::last_write_time(entry.path(), fs::last_write_time(entry.path()) - std::chrono::seconds(1));
  };
  for (uint64_t key = 1; key <= 3; ++key) {
    ASSERT_TRUE(cache->store(key, contents).ok());
    age();
  }
  EXPECT_NE(cache->find(1), nullptr);  // used again, so 2 is the oldest now
  age();
  ASSERT_TRUE(cache->store(4, contents).ok());
  EXPECT_NE(cache->find(1), nullptr);
  EXPECT_EQ(cache->find(2), nullptr);
  EXPECT_NE(cache->find(4), nullptr);
  EXPECT_LE(bytes(), 3 * 1064);
  EXPECT_TRUE(cache->store(9, std::string(5000, 'c')).ok());
  EXPECT_EQ(cache->find(9), nullptr) << "more than the limit alone";
  EXPECT_NE(cache->find(1), nullptr);
}

TEST_F(SegmentCacheTest, AFileInThePlaceOfTheFolderIsAnError) {
  std::ofstream(folder_) << "not a folder";
  const auto cache = SegmentCache::open(folder_, 0);
  ASSERT_FALSE(cache.ok());
  EXPECT_NE(cache.error().to_string().find(folder_), std::string::npos);
}

TEST_F(SegmentCacheTest, SeveralThreadsMayStoreAndFind) {
  const auto cache = open(20 * 1064);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (uint64_t i = 0; i < 40; ++i) {
        const std::string contents(1000, static_cast<char>('a' + i % 10));
        EXPECT_TRUE(cache->store(i % 10, contents).ok());
        if (const auto entry = cache->find(i % 10)) {
          EXPECT_EQ(entry->contents(), contents);
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace heddle
