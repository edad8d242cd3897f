// The heap of a start: no object is given twice, whoever deletes it, and what is not from it goes where it
// was from.
#include "start_heap.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace heddle {
namespace {

struct Block {
  unsigned char* at;
  size_t bytes;
  unsigned char mark;
};

Block make(size_t bytes, unsigned char mark) {
  auto* at = static_cast<unsigned char*>(::operator new(bytes));
  std::memset(at, mark, bytes);
  return {at, bytes, mark};
}

bool intact(const Block& block) {
  for (size_t i = 0; i < block.bytes; ++i) {
    if (block.at[i] != block.mark) return false;
  }
  return true;
}

TEST(StartHeap, ObjectsOfAllSizesFromManyThreadsDoNotOverlap) {
  std::vector<Block> before;
  for (size_t bytes = 0; bytes < 2000; bytes += 7) before.push_back(make(bytes, 1));
  EXPECT_EQ(cli::use_start_heap(), cli::use_start_heap());

  std::mutex mutex;
  std::vector<Block> handed;  // from one thread, deleted by another
  int damaged = 0, crooked = 0;
  const auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    std::vector<Block> own;
    int bad = 0, unaligned = 0;
    for (int i = 0; i < 40000; ++i) {
      if (own.empty() || random() % 5 < 3) {
        const size_t bytes = random() % 4 == 0 ? random() % 3000 : random() % 200;
        own.push_back(make(bytes, static_cast<unsigned char>(random())));
        unaligned += reinterpret_cast<uintptr_t>(own.back().at) % __STDCPP_DEFAULT_NEW_ALIGNMENT__ != 0;
        continue;
      }
      std::swap(own[random() % own.size()], own.back());
      Block block = own.back();
      own.pop_back();
      if (random() % 3 == 0) {
        const std::lock_guard lock(mutex);
        handed.push_back(block);
        std::swap(handed[random() % handed.size()], handed.back());
        block = handed.back();
        handed.pop_back();
      }
      bad += !intact(block);
      ::operator delete(block.at);
    }
    const std::lock_guard lock(mutex);
    damaged += bad;
    crooked += unaligned;
    handed.insert(handed.end(), own.begin(), own.end());
  };
  // Threads that end leave objects behind, and others begin.
  for (unsigned round = 0; round < 3; ++round) {
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t) threads.emplace_back(work, 10 * round + t);
    for (auto& thread : threads) thread.join();
  }
  handed.insert(handed.end(), before.begin(), before.end());
  for (const Block& block : handed) {
    damaged += !intact(block);
    ::operator delete(block.at, block.bytes);
  }
  EXPECT_EQ(damaged, 0);
  EXPECT_EQ(crooked, 0);
}

TEST(StartHeap, WhatAThreadDeletesIsWhatItGetsNext) {
  if (!cli::use_start_heap()) GTEST_SKIP() << "not in use: a sanitizer's build, or little address space";
  for (const size_t bytes : {1, 16, 100, 1024}) {
    void* const first = ::operator new(bytes);
    ::operator delete(first);
    void* const again = ::operator new(bytes);
    EXPECT_EQ(again, first) << bytes << " bytes";
    ::operator delete(again);
  }
}

TEST(StartHeap, ALaterThreadUsesWhatAnEndedOneKept) {
  if (!cli::use_start_heap()) GTEST_SKIP() << "not in use: a sanitizer's build, or little address space";
  std::set<void*> first, second;
  const auto fill = [](std::set<void*>& seen) {
    std::vector<void*> held;
    for (int i = 0; i < 1000; ++i) held.push_back(::operator new(500));
    seen.insert(held.begin(), held.end());
    for (void* at : held) ::operator delete(at);
  };
  std::thread(fill, std::ref(first)).join();
  std::thread(fill, std::ref(second)).join();
  EXPECT_EQ(first.size(), 1000U);
  EXPECT_EQ(second, first);
}

TEST(StartHeap, EveryFormOfNewAndDeleteWorks) {
  const bool used = cli::use_start_heap();
  std::set<void*> none;
  for (int i = 0; i < 100; ++i)
    EXPECT_TRUE(none.insert(::operator new(0)).second) << "no bytes, yet one address";
  for (void* at : none) ::operator delete(at);
  ::operator delete(nullptr);

  struct alignas(64) Line {
    char bytes[64];
  };
  const auto line = std::make_unique<Line>();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(line.get()) % 64, 0U);
  const auto numbers = std::make_unique<int[]>(100);
  EXPECT_EQ(numbers[99], 0);
  int* const quiet = new (std::nothrow) int(7);
  ASSERT_NE(quiet, nullptr);
  delete quiet;
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>('a' + i % 26);
  EXPECT_EQ(text.substr(4990), "yzabcdefgh");
  // A sanitizer ends the program instead.
  if (used) {
    EXPECT_THROW((void)::operator new(SIZE_MAX / 2), std::bad_alloc);
  }
}

}  // namespace
}  // namespace heddle
