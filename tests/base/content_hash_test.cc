#include "heddle/base/content_hash.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace heddle {
namespace {

TEST(ContentHash, EveryByteTheLengthAndTheOrderCount) {
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{7}, size_t{31}, size_t{32}, size_t{33}, size_t{200}}) {
    std::string content(size, '\0');
    for (size_t i = 0; i < size; ++i) content[i] = static_cast<char>(i * 37);
    std::set<uint64_t> seen = {content_hash(content)};
    EXPECT_EQ(content_hash(content), *seen.begin());
    for (size_t at = 0; at < size; ++at) {
      std::string changed = content;
      changed[at] = static_cast<char>(changed[at] ^ 1);
      EXPECT_TRUE(seen.insert(content_hash(changed)).second) << size << " bytes, byte " << at;
    }
    EXPECT_TRUE(seen.insert(content_hash(content + '\0')).second) << size;
  }
  EXPECT_NE(content_hash(std::string(64, 'a') + std::string(64, 'b')),
            content_hash(std::string(64, 'b') + std::string(64, 'a')));
}

// It names files in caches and plans: another value would make them strangers.
TEST(ContentHash, ItsValuesStay) {
  EXPECT_EQ(content_hash(""), 0x8819cd15fec371dbULL);
  EXPECT_EQ(content_hash("a model's content, longer than one step of 32 bytes"), 0xd773952f3f5aeef3ULL);
}

}  // namespace
}  // namespace heddle
