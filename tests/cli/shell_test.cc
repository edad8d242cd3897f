// Completion scripts and the manual page say what --help says, and shells and man can read them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "run_program.h"

namespace heddle {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string output_of(const std::vector<std::string>& arguments) {
  const TemporaryFolder folder;
  const Ran ran = run_heddle(arguments, folder.path());
  EXPECT_EQ(ran.status, 0) << ran.err;
  return ran.out;
}

bool is_installed(const std::string& program) {
  return std::filesystem::exists("/usr/bin/" + program) || std::filesystem::exists("/bin/" + program);
}

TEST(Version, NamesTheBuild) {
  EXPECT_THAT(output_of({"--version"}),
              AllOf(StartsWith("heddle 0."), HasSubstr(" MPI"), HasSubstr("libtorch")));
}

// What bash offers for the words of a line, of which the last is being typed.
std::string bash_words(const std::string& words) {
  const TemporaryFolder folder;
  folder.write("heddle.bash", output_of({"completion", "bash"}));
  folder.write("ask.bash",
               "source ./heddle.bash\nCOMP_WORDS=(" + words +
                   ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_heddle\necho \"${COMPREPLY[@]}\"\n");
  const Ran ran = run_command({"bash", "--norc", "ask.bash"}, folder.path());
  EXPECT_EQ(ran.status, 0) << ran.err;
  return ran.out;
}

TEST(Completion, BashCompletesVerbsPartsFlagsAndFiles) {
  EXPECT_EQ(bash_words("heddle fle"), "fleet\n");
  EXPECT_EQ(bash_words("heddle fleet repl"), "replan\n");
  EXPECT_EQ(bash_words("heddle plan m.onnx --plann"), "--planner\n");
  EXPECT_EQ(bash_words("heddle fleet plan --pro"), "--prove\n");
  EXPECT_EQ(bash_words("heddle fleet plan --js"), "--json\n");
  EXPECT_EQ(bash_words("heddle plan plan --recheck"), "\n") << "a flag of `run` alone";
  EXPECT_EQ(bash_words("heddle run --recheck"), "--recheck\n");
  EXPECT_EQ(bash_words("heddle plan ask"), "ask.bash\n");
  EXPECT_EQ(bash_words("heddle plan --cluster ask"), "ask.bash\n");
}

TEST(Completion, OtherShellsCanReadTheirScripts) {
  const TemporaryFolder folder;
  for (const std::string shell : {"zsh", "fish"}) {
    const std::string script = output_of({"completion", shell});
    EXPECT_THAT(script,
                AllOf(HasSubstr("doctor"), HasSubstr("replan"), HasSubstr("recheck"), HasSubstr("unsplit")));
    if (!is_installed(shell)) continue;
    folder.write(shell + ".script", script);
    const Ran ran = run_command({shell, "-n", shell + ".script"}, folder.path());
    EXPECT_EQ(ran.status, 0) << shell << ": " << ran.err;
  }
}

TEST(Completion, AnUnknownShellIsRefused) {
  const TemporaryFolder folder;
  const Ran ran = run_heddle({"completion", "zssh"}, folder.path());
  EXPECT_EQ(ran.status, 2);
  EXPECT_EQ(ran.err, "heddle: SHELL zssh: expected bash, zsh or fish (did you mean 'zsh'?)\n");
}

TEST(ManualPage, HasEveryVerbAndManReadsItWithoutAWarning) {
  const std::string page = output_of({"man"});
  EXPECT_THAT(page, AllOf(HasSubstr(".SS \"heddle plan\""), HasSubstr(".SS \"heddle fleet replan\""),
                          HasSubstr("\\-\\-recheck"), HasSubstr("EXIT STATUS")));
  if (!is_installed("man")) GTEST_SKIP() << "there is no program man";
  const TemporaryFolder folder;
  folder.write("heddle.1", page);
  const Ran ran = run_command({"man", "--warnings", "-l", "-Tutf8", "heddle.1"}, folder.path());
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  EXPECT_THAT(ran.out, Not(HasSubstr("\\-")));
}

TEST(Help, FitsEightyColumnsAndKeepsResearchFlagsForHelpAll) {
  const std::string help = output_of({"plan", "--help"}), all = output_of({"plan", "--help-all"});
  EXPECT_THAT(help, AllOf(HasSubstr("Planning:"), HasSubstr("Cold start:"), HasSubstr("--time-limit TIME")));
  EXPECT_THAT(help, AllOf(Not(HasSubstr("--ndom")), HasSubstr("--help-all shows them")));
  EXPECT_THAT(all, AllOf(HasSubstr("Research:"), HasSubstr("--ndom N")));
  EXPECT_EQ(output_of({"help", "plan"}), help);
  EXPECT_EQ(output_of({"help", "fleet", "plan"}), output_of({"fleet", "plan", "--help"}));
  for (const auto* verb : {"plan", "run", "serve", "loadtest", "devices", "bench"}) {
    std::istringstream lines(output_of({verb, "--help-all"}));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << verb << ": " << line;
  }
}

TEST(Help, CommonFlagsMayStandBeforeTheVerb) {
  EXPECT_EQ(output_of({"--json", "planners"}), output_of({"planners", "--json"}));
  EXPECT_EQ(output_of({"version"}), output_of({"--version"}));
}

}  // namespace
}  // namespace heddle
