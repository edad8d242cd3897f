// Spelling, errors, hashes, progress lines.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "heddle/base/gap.h"
#include "heddle/base/hash.h"
#include "heddle/base/progress.h"
#include "heddle/base/random.h"
#include "heddle/base/spelling.h"
#include "heddle/base/status.h"

namespace heddle {
namespace {

using Names = std::vector<std::string>;

TEST(Bounds, SayWhichTimesTheyAreFor) {
  EXPECT_EQ(bound_text("12.3 ms"), "bound 12.3 ms for the profile's times");
  EXPECT_EQ(bound_note("the times of a file"), "Bound and gap are for the times of a file.\n");
}

TEST(NearestSpelling, FindsSlipsOfTheFingers) {
  const Names names = {"bandwidth", "latency", "duplex", "memory"};
  EXPECT_EQ(nearest_spelling("bandwith", names), "bandwidth");
  EXPECT_EQ(nearest_spelling("latnecy", names), "latency");
  EXPECT_EQ(nearest_spelling("dupplex", names), "duplex");
  EXPECT_EQ(nearest_spelling("memory", names), "memory");
  EXPECT_EQ(nearest_spelling("v100", Names{"P100", "V100"}), "V100");
}

TEST(NearestSpelling, IsSilentWhereNothingIsNear) {
  const Names names = {"bandwidth", "latency"};
  EXPECT_EQ(nearest_spelling("colour", names), "");
  EXPECT_EQ(nearest_spelling("foo", Names{"ios"}), "");
  EXPECT_EQ(nearest_spelling("", names), "");
  EXPECT_EQ(nearest_spelling("x", Names{"y"}), "");
  EXPECT_EQ(nearest_spelling(std::string(100000, 'a'), names), "");
  EXPECT_EQ(nearest_spelling("latency", Names{}), "");
}

TEST(NearestSpelling, TiesGoToTheFirst) {
  EXPECT_EQ(nearest_spelling("cat", Names{"bat", "rat"}), "bat");
  EXPECT_EQ(nearest_spelling("cat", Names{"rat", "bat", "cats"}), "rat");
}

// The least number of edits, by trying them all breadth first; swapped letters are not edited again.
TEST(NearestSpelling, AgreesWithBreadthFirstSearchOnShortWords) {
  const auto neighbours = [](const std::string& word) {
    std::set<std::string> found;
    for (size_t i = 0; i <= word.size(); ++i) {
      for (const char c : {'a', 'b', 'c'}) {
        found.insert(word.substr(0, i) + c + word.substr(i));
        if (i < word.size()) found.insert(word.substr(0, i) + c + word.substr(i + 1));
      }
      if (i < word.size()) found.insert(word.substr(0, i) + word.substr(i + 1));
      if (i + 1 < word.size()) found.insert(word.substr(0, i) + word[i + 1] + word[i] + word.substr(i + 2));
    }
    return found;
  };
  Random random(3);
  for (int round = 0; round < 300; ++round) {
    std::string word(3 + random.below(3), 'a'), candidate(2 + random.below(4), 'a');
    for (char& c : word) c = static_cast<char>('a' + random.below(3));
    for (char& c : candidate) c = static_cast<char>('a' + random.below(3));
    std::set<std::string> one = neighbours(word);
    const bool near = word == candidate || one.contains(candidate);
    bool two = near;
    for (const auto& w : one) two = two || neighbours(w).contains(candidate);
    const bool suggested = !nearest_spelling(word, Names{candidate}).empty();
    EXPECT_TRUE(!near || suggested) << word << " " << candidate;
    EXPECT_TRUE(!suggested || two) << word << " " << candidate;
  }
}

TEST(DidYouMean, IsAHintOrNothing) {
  EXPECT_EQ(did_you_mean("heftt", Names{"heft"}), " (did you mean 'heft'?)");
  EXPECT_EQ(did_you_mean("zzzzz", Names{"heft"}), "");
}

TEST(JoinNames, ReadsLikeASentence) {
  EXPECT_EQ(join_names(Names{}), "");
  EXPECT_EQ(join_names(Names{"a"}), "'a'");
  EXPECT_EQ(join_names(Names{"a", "b"}), "'a' and 'b'");
  EXPECT_EQ(join_names(Names{"a", "b", "c"}), "'a', 'b' and 'c'");
  EXPECT_EQ(join_names(Names{"a", "b", "c"}, 2), "'a', 'b' and 1 more");
  EXPECT_EQ(join_names(Names{"a", "b"}, 0), "2 more");
}

TEST(QuoteText, KeepsMessagesShortAndPrintable) {
  EXPECT_EQ(quote_text("abc"), "'abc'");
  EXPECT_EQ(quote_text(std::string("a\n\0\x7f", 4)), "'a\\x0a\\x00\\x7f'");
  EXPECT_EQ(quote_text(std::string(100, 'x'), 4), "'xxxx...'");
  EXPECT_EQ(quote_text("ab\xc3\xa9", 3), "'ab...'");  // the two bytes of one letter stay together
}

TEST(Error, PutsTheOutermostContextFirst) {
  const Error error =
      Error(Code::kNotFound, "no such op").with_context("node 'conv1'").with_context("model.onnx");
  EXPECT_EQ(error.to_string(), "model.onnx: node 'conv1': no such op");
  EXPECT_EQ(error.message(), "no such op");
  EXPECT_EQ(error.contexts(), (Names{"model.onnx", "node 'conv1'"}));
}

TEST(Error, EveryCodeHasItsOwnName) {
  std::set<std::string> names;
  for (int code = 0; code <= static_cast<int>(Code::kInternal); ++code)
    names.insert(code_name(static_cast<Code>(code)));
  EXPECT_EQ(names.size(), static_cast<size_t>(Code::kInternal) + 1);
  EXPECT_FALSE(names.contains("unknown"));
}

Result<int> half(int number) {
  if (number % 2 != 0) return Error(Code::kInvalidInput, "odd");
  return number / 2;
}
Result<int> quarter(int number) {
  HEDDLE_ASSIGN_OR_RETURN(const int once, half(number));
  HEDDLE_ASSIGN_OR_RETURN(const int twice, half(once));
  return twice;
}
Status is_even(int number) {
  HEDDLE_RETURN_IF_ERROR(half(number));
  return {};
}

TEST(Result, MacrosHandTheFirstErrorOn) {
  ASSERT_TRUE(quarter(8).ok());
  EXPECT_EQ(*quarter(8), 2);
  ASSERT_FALSE(quarter(6).ok());
  EXPECT_EQ(quarter(6).error().message(), "odd");
  EXPECT_TRUE(is_even(2).ok());
  EXPECT_FALSE(is_even(3).ok());
}

TEST(Hasher, IsStableAcrossReleases) {
  // Stored in files: these values must never change.
  EXPECT_EQ(hex64(Hasher().value()), "f52a15e9a9b5e89b");
  EXPECT_EQ(hex64(0), "0000000000000000");
  EXPECT_EQ(hex64(0x0123456789abcdefULL), "0123456789abcdef");
}

TEST(Hasher, BordersBetweenTextsCount) {
  EXPECT_NE(Hasher().text("ab").text("c").value(), Hasher().text("a").text("bc").value());
  EXPECT_NE(Hasher().number(1).value(), Hasher().number(256).value());
}

TEST(ProgressLine, ShowsOnlyWhatIsKnown) {
  EXPECT_EQ(progress_line({.what = "profiling"}, 1.25), "profiling  1.2 s");
  EXPECT_EQ(progress_line({.what = "profiling", .done = 42, .total = 100}, 3.2),
            "profiling  42/100 (42 %)  3.2 s");
  EXPECT_EQ(progress_line({.what = "search", .done = 7, .best_us = 12300, .bound_us = 11000}, 3.2),
            "search  7  3.2 s  best 12.3 ms  bound 11.0 ms  gap 11.8 %");
  // Never 100 % before the end.
  EXPECT_EQ(progress_line({.what = "x", .done = 999, .total = 1000}, 0), "x  999/1000 (99 %)  0.0 s");
}

TEST(TerminalProgress, QuickWorkDrawsNothing) {
  ::testing::internal::CaptureStderr();
  {
    TerminalProgress progress;
    for (int i = 0; i < 100; ++i)
      progress.report({.what = "quick", .done = static_cast<double>(i), .total = 100});
    progress.finish();
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace heddle
