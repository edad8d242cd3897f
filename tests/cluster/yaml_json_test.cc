// YAML as JSON, where they differ in what they let through.
#include "heddle/cluster/yaml_json.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

TEST(YamlAsJson, OtherEncodingsAreRefusedWithTheLine) {
  const auto value = parse_yaml_as_json("kind: fleet\nname: n\xe5t\n", "fleet.yaml", "fleet");
  ASSERT_FALSE(value.ok());
  EXPECT_EQ(value.error().to_string(),
            "fleet.yaml:2: here is text that is not UTF-8; save the file as UTF-8");
  const auto key = parse_yaml_as_json("n\xe5t: 1\n", "fleet.yaml", "fleet");
  ASSERT_FALSE(key.ok());
  EXPECT_EQ(key.error().code(), Code::kInvalidInput);
  const auto fine = parse_yaml_as_json("name: n\xc3\xa5t\n", "fleet.yaml", "fleet");
  ASSERT_TRUE(fine.ok());
  EXPECT_EQ(fine->json["name"], "n\xc3\xa5t");
}

}  // namespace
}  // namespace heddle
