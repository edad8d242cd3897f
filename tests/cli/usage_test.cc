// What a user does wrong gets exit status 2, a message that says what, where, what was expected and what to
// do, and leaves no file behind. The messages are golden: whoever changes one sees it here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "run_program.h"

namespace heddle {
namespace {

struct Mistake {
  const char* name;
  std::vector<std::string> arguments;
  std::string message;  // all of stderr
};

void PrintTo(const Mistake& m, std::ostream* os) { *os << m.name; }

class Usage : public testing::TestWithParam<Mistake> {};

TEST_P(Usage, IsRefusedWithAMessageThatHelps) {
  const TemporaryFolder folder;
  folder.write("chain.json", kTwoOpGraph);
  folder.write("empty.json", "");
  folder.write("list.json", "[1, 2]");
  folder.write("cut.json", R"({"format": "heddle-graph", "version": 1, "name": )");
  folder.write("noise.onnx", "this is no model");
  folder.write("fleet.yaml", "format: heddle-fleet\nversion: 1\n");
  folder.write("box.yaml", "name: box\nhosts: [{name: host}]\ndevices:\n  - {name: a, class: A1000}\n");
  std::filesystem::create_directory(folder.file("folder.onnx"));
  const auto files_before = std::distance(std::filesystem::directory_iterator(folder.path()), {});
  const auto ran = run_heddle(GetParam().arguments, folder.path());
  EXPECT_EQ(ran.status, 2) << ran.err;
  EXPECT_EQ(ran.err, GetParam().message);
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), files_before);
}

const std::vector<Mistake> kMistakes = {
#include "usage_mistakes.inc"
};

INSTANTIATE_TEST_SUITE_P(Mistakes, Usage, testing::ValuesIn(kMistakes),
                         [](const auto& mistake) { return std::string(mistake.param.name); });

TEST(UsageFiles, AModelMayHaveTheNameOfAFleet) {
  const TemporaryFolder folder;
  std::string graph = kTwoOpGraph;
  graph.replace(graph.find("\"chain\""), 7, "\"heddle-fleet\"");
  folder.write("fleet.json", graph);
  const auto ran = run_heddle({"plan", "fleet.json", "--cluster", "preset:v100", "-q"}, folder.path());
  EXPECT_EQ(ran.status, 0) << ran.err;
}

TEST(ClosedPipe, IsNoError) {
  const TemporaryFolder folder;
  // The manual page is longer than a pipe holds, so the program meets the closed end while it writes.
  const auto ran =
      run_command({"bash", "-c", HEDDLE_PROGRAM " man | true; echo ${PIPESTATUS[0]}"}, folder.path());
  EXPECT_EQ(ran.out, "0\n");
  EXPECT_EQ(ran.err, "");
}

TEST(FullDisk, IsSaidForHelpToo) {
  const TemporaryFolder folder;
  for (const std::string arguments : {"--help", "plan --help", "--version", "help plan"}) {
    const auto ran =
        run_command({"bash", "-c", HEDDLE_PROGRAM " " + arguments + " > /dev/full"}, folder.path());
    EXPECT_EQ(ran.status, 2) << arguments;
    EXPECT_EQ(ran.err, "heddle: cannot write to standard output\n") << arguments;
  }
}

TEST(Inspect, SaysHowManyTypesItLeavesOut) {
  const TemporaryFolder folder;
  const auto ran = run_heddle({"inspect", "zoo:resnet-18", "--top", "2"}, folder.path());
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, testing::ContainsRegex("\nand [0-9]+ more types \\(--top [0-9]+\\)\n"));
}

}  // namespace
}  // namespace heddle
