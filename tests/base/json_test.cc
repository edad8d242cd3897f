#include "heddle/base/json.h"

#include <gtest/gtest.h>

#include "heddle/base/file.h"
#include "heddle/base/random.h"
#include "support/golden.h"

namespace heddle {
namespace {

Json parsed(std::string_view text) {
  auto document = parse_json(text);
  EXPECT_TRUE(document.ok()) << text << ": " << document.error().to_string();
  return document.ok() ? std::move(document).value() : Json();
}

std::string error_of(std::string_view text, const JsonLimits& limits = {}) {
  const auto document = parse_json(text, limits);
  return document.ok() ? "accepted" : document.error().to_string();
}

TEST(ParseJson, KeepsValuesAndTheOrderOfKeys) {
  const Json document = parsed(R"({"z": [1, -2, 2.5, true, null, "a\u00e9"], "a": {}})");
  EXPECT_EQ(document.dump(), "{\"z\":[1,-2,2.5,true,null,\"a\xc3\xa9\"],\"a\":{}}");
  EXPECT_EQ(parsed("\xef\xbb\xbf 7 \n"), 7);  // a byte order mark
  EXPECT_EQ(parsed("18446744073709551615").get<uint64_t>(), UINT64_MAX);
}

TEST(ParseJson, RefusesWithLineColumnAndReason) {
  const std::vector<std::string> inputs = {"",
                                           " ",
                                           "{",
                                           "[1,",
                                           "[1,]",
                                           "{\"a\":1,}",
                                           "{'a':1}",
                                           "{\"a\" 1}",
                                           "{\"a\":1 \"b\":2}",
                                           "tru",
                                           "nul",
                                           "01",
                                           "1.",
                                           "-",
                                           "+1",
                                           ".5",
                                           "1e",
                                           "NaN",
                                           "Infinity",
                                           "-Infinity",
                                           "[1e999]",
                                           "0x10",
                                           "1 2",
                                           "{} x",
                                           "// c\n1",
                                           "[1, /* c */ 2]",
                                           "\"abc",
                                           "\"a\nb\"",
                                           "\"a\tb\"",
                                           "\"\\x\"",
                                           "\"\\u12\"",
                                           "\"\\ud800\"",
                                           "\"\\udc00\"",
                                           "\"\xff\"",
                                           "\"\xc3\"",
                                           "{\"a\":1,\n \"b\":2,\n \"a\":3}",
                                           "{\"a\":{\"x\":1,\"x\":2}}",
                                           "{\"a\\\"b\":1, \"a\\\"b\":2}",
                                           "{1:2}",
                                           "]",
                                           "}",
                                           "[}",
                                           "{]",
                                           ":",
                                           ",",
                                           "[1\n,\n,2]",
                                           "\x01"};
  std::string report;
  for (const auto& input : inputs)
    report +=
        Json(input).dump(-1, ' ', true, Json::error_handler_t::replace) + "\n    " + error_of(input) + "\n";
  report += "\"[1]\\u0000[2]\"\n    " + error_of(std::string_view("[1]\0[2]", 7)) + "\n";
  testing::expect_golden("base/golden/json_syntax_errors.txt", report);
}

TEST(ParseJson, DeepNestingIsRefusedWhereItBegins) {
  const JsonLimits limits{.max_depth = 3};
  EXPECT_EQ(error_of("[[[1]]]", limits), "accepted");
  EXPECT_EQ(error_of("[[[{}]]]", limits),
            "line 1, column 4: nested deeper than the 3 levels that are accepted");
  EXPECT_EQ(error_of("1", {.max_depth = 0}), "accepted");
  EXPECT_EQ(error_of("[]", {.max_depth = 0}),
            "line 1, column 1: nested deeper than the 0 levels that are accepted");
  // Far deeper than any stack: neither reading nor the clean-up recurses.
  const std::string deep(20'000'000, '[');
  EXPECT_EQ(error_of(deep), "line 1, column 65: nested deeper than the 64 levels that are accepted");
}

TEST(ParseJson, SizeIsLimited) {
  EXPECT_EQ(error_of("[1, 2]", {.max_bytes = 5}), "the document has 6 B, at most 5 B are accepted");
  EXPECT_EQ(error_of("[1,2]", {.max_bytes = 5}), "accepted");
}

TEST(ParseJson, ManyKeysAreReadInLinearTime) {
  // A quadratic search for duplicates would take minutes.
  std::string text = "{";
  for (int i = 0; i < 200000; ++i) text += "\"key" + std::to_string(i) + "\":" + std::to_string(i) + ",";
  const Json document = parsed(text + "\"last\":0}");
  EXPECT_EQ(document.size(), 200001u);
  EXPECT_EQ(error_of(text + "\"key77\":0}").substr(0, 8), "line 1, ");
}

TEST(ParseJson, MutatedDocumentsNeverCrashAndAcceptedOnesRoundTrip) {
  const std::string seed =
      R"({"version":1,"ops":[{"name":"a","in":[0,1],"t":1.5e-3},{"name":"b\n","in":[],"ok":true}]})";
  Random random(11);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = seed;
    for (uint64_t edits = 1 + random.below(3); edits > 0; --edits) {
      const size_t at = random.below(text.size());
      if (random.chance(0.3))
        text.erase(at, 1 + random.below(5));
      else if (random.chance(0.5))
        text[at] = static_cast<char>(random.next());
      else
        text.insert(at, 1, "{}[],:\"0-"[random.below(9)]);
    }
    const auto document = parse_json(text);
    if (!document.ok()) continue;
    ++accepted;
    EXPECT_EQ(parsed(document->dump()), *document);
  }
  EXPECT_GT(accepted, 0);
}

TEST(ReadJsonFile, NamesTheFile) {
  const std::string path = ::testing::TempDir() + "heddle_json_test.json";
  ASSERT_TRUE(write_file_atomic(path, "[1,\n2,]").ok());
  const auto document = read_json_file(path);
  ASSERT_FALSE(document.ok());
  EXPECT_EQ(document.error().contexts().front(), path);
  EXPECT_EQ(document.error().contexts().back(), "line 2, column 3");
  std::remove(path.c_str());
  EXPECT_EQ(read_json_file(path).error().code(), Code::kNotFound);
}

class Cursor : public ::testing::Test {
 protected:
  const Json document_ =
      parsed(R"({"ops": [{"name": "conv1", "time": 2.5}, {"name": 7}], "count": 3, "big": 1e300,
    "huge": 18446744073709551615, "flag": true, "none": null, "odd name": {"x'y": 1}, "mixed": [1, "two", 3.5],
    "long": "0123456789012345678901234567890123456789012345678901234567890123456789"})");
  const JsonCursor root_{document_};

  JsonCursor at(std::string_view key) const { return root_.at(key).value(); }
};

template <class T>
std::string error_text(const T& result) {
  return (result.ok() ? std::string("accepted") : result.error().to_string()) + "\n";
}

TEST_F(Cursor, ReadsWhatIsThere) {
  EXPECT_EQ(*at("count").as_int(0, 3), 3);
  EXPECT_EQ(*at("count").as_number(), 3.0);
  EXPECT_EQ(*at("big").as_number(), 1e300);
  EXPECT_TRUE(*at("flag").as_bool());
  const auto ops = at("ops").elements();
  ASSERT_TRUE(ops.ok());
  EXPECT_EQ(*(*ops)[0].at("name")->as_string(), "conv1");
  EXPECT_EQ((*ops)[1].at("name")->path(), "$.ops[1].name");
  EXPECT_TRUE(root_.has("none"));
  EXPECT_FALSE(root_.has("nothing"));
  EXPECT_FALSE(at("count").has("x"));
}

TEST_F(Cursor, DefaultsStandInForAbsentMembersOnly) {
  EXPECT_EQ(*root_.int_or("absent", 5), 5);
  EXPECT_EQ(*root_.int_or("count", 5), 3);
  EXPECT_EQ(*root_.string_or("absent", "x"), "x");
  EXPECT_EQ(*root_.number_or("absent", 1.5, 0, 1), 1.5);
  EXPECT_TRUE(*root_.bool_or("absent", true));
  EXPECT_FALSE(root_.int_or("flag", 5).ok());
  EXPECT_FALSE(root_.string_or("none", "x").ok());
}

TEST_F(Cursor, ErrorsNameThePlaceWhatIsThereAndWhatWasExpected) {
  const auto ops = at("ops").elements().value();
  std::string report;
  report += error_text(root_.check_keys({"ops", "counts", "big", "huge", "flag", "none"}));
  report += error_text(root_.check_keys({"first", "second"}));
  report += error_text(at("count").check_keys({"a"}));
  report += error_text(root_.at("missing"));
  report += error_text(at("count").at("x"));
  report += error_text(ops[1].at("name")->as_string());
  report += error_text(ops[0].at("time")->as_int());
  report += error_text(ops[0].at("name")->as_number());
  report += error_text(at("ops").elements(1));
  report += error_text(at("ops").as_string());
  report += error_text(root_.elements());
  report += error_text(root_.as_bool());
  report += error_text(at("none").as_bool());
  report += error_text(at("flag").as_int());
  report += error_text(at("count").as_int(4, 9));
  report += error_text(at("count").as_int(-1, 2));
  report += error_text(at("huge").as_int());
  report += error_text(at("big").as_number(0, 1e9));
  report += error_text(at("long").as_int());
  report += error_text(at("odd name").at("x'y")->as_string());
  report += error_text(at("mixed").as_ints(0, 9));
  report += error_text(at("mixed").as_numbers(0, 9));
  report += error_text(at("mixed").as_strings());
  report += error_text(at("count").as_ints(0, 9));
  report += error_text(root_.int_or("flag", 5));
  report += error_text(root_.number_or("count", 1, 0, 2.5));
  testing::expect_golden("base/golden/json_cursor_errors.txt", report);
}

TEST_F(Cursor, ArraysOfNumbersAreRead) {
  const Json numbers = parsed("[1, 2, 3]");
  EXPECT_EQ(*JsonCursor(numbers).as_ints(1, 3), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(*JsonCursor(numbers).as_numbers(1, 3), (std::vector<double>{1, 2, 3}));
  EXPECT_FALSE(JsonCursor(numbers).as_ints(1, 2).ok());
  const Json texts = parsed(R"(["a", "b"])");
  EXPECT_EQ(*JsonCursor(texts).as_strings(), (std::vector<std::string>{"a", "b"}));
}

}  // namespace
}  // namespace heddle
