#include "../../src/solve/wire_format.h"

#include <gtest/gtest.h>

#include "heddle/base/random.h"

namespace heddle::wire {
namespace {

TEST(WireFormat, WritesTheSpecificationsExamples) {
  // From the encoding guide of protocol buffers: field 1 = 150 is 08 96 01; field 2 = "testing" is 12 07 and
  // the text.
  EXPECT_EQ(Writer().varint_field(1, 150).bytes(), std::string("\x08\x96\x01", 3));
  EXPECT_EQ(Writer().bytes_field(2, "testing").bytes(), std::string("\x12\x07testing"));
  // Negative numbers take ten bytes.
  EXPECT_EQ(Writer().varint_field(1, -2).bytes().size(), 11u);
}

TEST(WireFormat, ReadsBackWhatItWrote) {
  const std::string bytes = Writer().varint_field(206, -7).double_field(3, 2.5).bytes_field(4, "abc").bytes();
  Reader reader(bytes);
  const auto first = reader.next(), second = reader.next(), third = reader.next();
  ASSERT_TRUE(first && second && third);
  EXPECT_EQ(first->number, 206u);
  EXPECT_EQ(static_cast<int64_t>(first->integer), -7);
  EXPECT_EQ(second->as_double(), 2.5);
  EXPECT_EQ(third->bytes, "abc");
  EXPECT_FALSE(reader.next());
  EXPECT_FALSE(reader.malformed());
}

TEST(WireFormat, RandomBytesEndWithoutReadingPastThem) {
  Random random(7);
  for (int round = 0; round < 20000; ++round) {
    std::string bytes(random.below(24), '\0');
    for (char& c : bytes) c = static_cast<char>(random.next());
    Reader reader(bytes);
    int fields = 0;
    while (reader.next()) ++fields;
    EXPECT_LE(fields, static_cast<int>(bytes.size()));
  }
}

}  // namespace
}  // namespace heddle::wire
