// Objects of files, member by member: units, ranges, missing, unknown and malformed members.
#include "heddle/base/fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "heddle/base/json.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

struct FieldValues {
  std::string name;
  double speed = 1, us = 0;
  int64_t memory = 0;
  bool fast = false;
  std::vector<std::string> tags;
  std::vector<int> cores;
};

Status read_values(const Json& json, FieldValues& v) {
  Fields fields(JsonCursor(json, "device"));
  fields.required("name", v.name)
      .optional("speed", v.speed, 0.0, 10.0)
      .optional("latency", v.us, kMicrosecondsUnit)
      .optional("memory", v.memory, kBytesUnit)
      .optional("fast", v.fast)
      .optional("tags", v.tags)
      .optional("cores", v.cores, 0, 7)
      .ignored({"note"});
  return fields.finish();
}

std::string read_error(const Json& json) {
  FieldValues values;
  const Status status = read_values(json, values);
  return status.ok() ? "" : status.error().to_string();
}

TEST(Fields, ReadMembersWithUnitsAndKeepTheRest) {
  FieldValues v;
  const Json json = {{"name", "gpu"},      {"latency", "1.5ms"}, {"memory", "2GiB"},  {"fast", true},
                     {"tags", {"a", "b"}}, {"cores", {0, 3}},    {"note", "anything"}};
  const Status status = read_values(json, v);
  ASSERT_TRUE(status.ok()) << status.error().to_string();
  EXPECT_EQ(v.name, "gpu");
  EXPECT_EQ(v.speed, 1);
  EXPECT_EQ(v.us, 1500);
  EXPECT_EQ(v.memory, int64_t{2} << 30);
  EXPECT_TRUE(v.fast);
  EXPECT_THAT(v.tags, testing::ElementsAre("a", "b"));
  EXPECT_THAT(v.cores, testing::ElementsAre(0, 3));
  ASSERT_TRUE(read_values({{"name", "x"}, {"latency", 7}, {"memory", 100}}, v).ok());
  EXPECT_EQ(v.us, 7);
  EXPECT_EQ(v.memory, 100);
}

TEST(Fields, NameTheMemberThatIsWrong) {
  EXPECT_THAT(read_error({{"speed", 1}}), HasSubstr("name"));
  EXPECT_THAT(read_error({{"name", 3}}), HasSubstr("name"));
  EXPECT_THAT(read_error({{"name", "x"}, {"speed", 11}}), HasSubstr("speed"));
  EXPECT_THAT(read_error({{"name", "x"}, {"memory", "2 apples"}}), HasSubstr("a size such as '16GiB'"));
  EXPECT_THAT(read_error({{"name", "x"}, {"memory", -1}}), HasSubstr("memory"));
  EXPECT_THAT(read_error({{"name", "x"}, {"latency", "soon"}}), HasSubstr("a time such as '5us'"));
  EXPECT_THAT(read_error({{"name", "x"}, {"fast", 1}}), HasSubstr("fast"));
  EXPECT_THAT(read_error({{"name", "x"}, {"tags", {"a", 1}}}), HasSubstr("tags"));
  EXPECT_THAT(read_error({{"name", "x"}, {"cores", {0, 8}}}), HasSubstr("cores"));
  // An unknown member comes first, with the nearest known one: the missing name may be what was meant.
  EXPECT_THAT(read_error({{"nam", "x"}}), HasSubstr("'name'"));
  EXPECT_THAT(read_error(Json::array()), HasSubstr("device"));
}

TEST(Fields, OfAFileHaveAFormatAndAVersion) {
  const auto read = [](const Json& json) {
    int64_t value = 0;
    Fields fields(JsonCursor(json, "file"), "heddle-test", 2);
    fields.required("value", value, 0, 9);
    const Status status = fields.finish();
    return status.ok() ? std::to_string(value) : status.error().to_string();
  };
  EXPECT_EQ(read({{"format", "heddle-test"}, {"version", 2}, {"value", 5}}), "5");
  EXPECT_THAT(read({{"format", "other"}, {"version", 1}, {"value", 5}}), HasSubstr("heddle-test"));
  EXPECT_THAT(read({{"format", "heddle-test"}, {"version", 3}, {"value", 5}}), HasSubstr("version"));
  EXPECT_TRUE(has_format({{"format", "a"}}, "a"));
  EXPECT_FALSE(has_format(Json::array({1}), "a"));
  EXPECT_TRUE(first_has({{"list", {{{"key", 1}}}}}, "list", "key"));
  EXPECT_FALSE(first_has({{"list", Json::array()}}, "list", "key"));
}

}  // namespace
}  // namespace heddle
