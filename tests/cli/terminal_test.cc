// Colours, the lines of --verbose, and the log of serve, as a user sees them.
#include "heddle/base/terminal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "heddle/base/json.h"
#include "run_program.h"

namespace heddle {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

constexpr char kEscape[] = "\x1b[";
constexpr char kTime[] = "20[0-9-]*T[0-9:]*\\.[0-9][0-9][0-9]Z";

class TerminalCli : public testing::Test {
 protected:
  void SetUp() override {
    folder_.write("two.json", kTwoOpGraph);
    ASSERT_EQ(heddle({"plan", "two.json", "--cluster", "preset:v100", "-o", "p.json", "-q"}).status, 0);
  }
  Ran heddle(const std::vector<std::string>& arguments) const {
    return run_heddle(arguments, folder_.path());
  }

  // The same on a terminal of its own, both streams together.
  std::string on_terminal(std::vector<std::string> arguments, const char* term, const char* no_color) const {
    int terminal = -1;
    const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
    if (child == 0) {
      setenv("TERM", term, 1);
      if (no_color != nullptr) setenv("NO_COLOR", no_color, 1);
      arguments.insert(arguments.begin(), HEDDLE_PROGRAM);
      std::vector<char*> argv;
      for (auto& a : arguments) argv.push_back(a.data());
      argv.push_back(nullptr);
      if (chdir(folder_.path().c_str()) == 0) execv(argv[0], argv.data());
      _exit(127);
    }
    std::string text;
    char part[4096];
    for (ssize_t n = 0; (n = read(terminal, part, sizeof part)) > 0;)
      text.append(part, static_cast<size_t>(n));
    close(terminal);
    int status = 0;
    waitpid(child, &status, 0);
    return text;
  }

  const TemporaryFolder folder_;
};

TEST_F(TerminalCli, ColoursChangeNoOtherCharacter) {
  const std::vector<std::vector<std::string>> verbs = {{"verify", "p.json"},
                                                       {"explain", "p.json"},
                                                       {"inspect", "two.json"},
                                                       {"planners"},
                                                       {"fleet", "planners"},
                                                       {"plan", "none.json"},
                                                       {"plan", "two.json", "--no-such-flag"}};
  for (auto verb : verbs) {
    const auto plain = heddle(verb);
    verb.insert(verb.begin() + 1, {"--color", "always"});
    const auto colored = heddle(verb);
    EXPECT_THAT(plain.out + plain.err, Not(HasSubstr(kEscape))) << verb[0];
    EXPECT_THAT(colored.out + colored.err, HasSubstr(kEscape)) << verb[0];
    EXPECT_EQ(without_color(colored.out), plain.out);
    EXPECT_EQ(without_color(colored.err), plain.err);
  }
}

TEST_F(TerminalCli, ColourIsForTerminals) {
  const std::vector<std::string> verify = {"verify", "p.json"}, wrong = {"plan", "none.json"};
  EXPECT_THAT(on_terminal(verify, "xterm", nullptr), HasSubstr("\x1b[32mvalid\x1b[0m"));
  EXPECT_THAT(on_terminal(wrong, "xterm", ""), HasSubstr("\x1b[1;31mheddle:\x1b[0m none.json"));
  for (const auto& verb : {verify, wrong}) {
    EXPECT_THAT(on_terminal(verb, "xterm", "1"), AllOf(HasSubstr("json: "), Not(HasSubstr(kEscape))));
    EXPECT_THAT(on_terminal(verb, "dumb", nullptr), AllOf(HasSubstr("json: "), Not(HasSubstr(kEscape))));
  }
  EXPECT_THAT(on_terminal({"--color", "never", "verify", "p.json"}, "xterm", nullptr),
              AllOf(HasSubstr("valid"), Not(HasSubstr(kEscape))));
  EXPECT_THAT(on_terminal({"verify", "p.json", "--json"}, "xterm", nullptr), Not(HasSubstr(kEscape)));
  EXPECT_THAT(heddle({"verify", "p.json", "--json", "--color", "always"}).out, Not(HasSubstr(kEscape)));
}

TEST_F(TerminalCli, VerboseSaysWhatTakesTimeAndLeavesTheResultAlone) {
  const std::vector<std::string> plan = {"plan", "two.json", "--cluster", "preset:v100", "--json"};
  EXPECT_EQ(heddle(plan).err, "");
  for (const auto& place : {plan.begin(), plan.end()}) {
    auto verbose = plan;
    verbose.insert(verbose.begin() + (place - plan.begin()), "-v");
    const auto ran = heddle(verbose);
    EXPECT_TRUE(parse_json(ran.out).ok()) << ran.out;
    EXPECT_THAT(ran.err,
                AllOf(HasSubstr(" s  heddle 0."), HasSubstr("step heft took "), HasSubstr("; best ")));
    std::istringstream lines(ran.err);
    for (std::string line; std::getline(lines, line);)
      EXPECT_THAT(line, MatchesRegex(" *[0-9]+\\.[0-9][0-9][0-9] s  .*"));
  }
}

// Its workers never come, so it ends by itself.
TEST_F(TerminalCli, TheLogOfServeHasTimesAndLevels) {
  folder_.write("fleet.yaml", R"(format: heddle-fleet
version: 1
name: small
classes: [{name: fast, count: 1, nic: 1GB/s}]
models: [{name: net, slo: 80ms, cut_bytes: [1000, 1000], latency_us: {fast: [[[966]]]}}]
)");
  const auto log_of = [this](const std::vector<std::string>& flags) {
    std::vector<std::string> serve = {"serve", "fleet.yaml",    "--port", "0",      "--grpc-port",
                                      "0",     "--worker-port", "0",      "--wait", "0.1"};
    serve.insert(serve.end(), flags.begin(), flags.end());
    const auto ran = heddle(serve);
    EXPECT_EQ(ran.out, "");
    return ran.err;
  };
  const std::string time = kTime, end = "heddle: no worker has 1 of class 'fast' .*\n";
  const std::string info = time + " info waiting for workers: heddle worker [^\n]*\n" + end;
  EXPECT_THAT(log_of({}), MatchesRegex(info));
  EXPECT_THAT(log_of({"--log-level", "info", "-q"}), MatchesRegex(info));
  for (const auto& quiet :
       {std::vector<std::string>{"-q"}, {"--log-level", "warning"}, {"-v", "--log-level", "error"}})
    EXPECT_THAT(log_of(quiet), MatchesRegex(end));
  for (const auto& verbose : {std::vector<std::string>{"-v"}, {"--log-level", "debug"}})
    EXPECT_THAT(log_of(verbose), MatchesRegex(time + " debug heddle 0\\.[^\n]*\n(" + time +
                                              " debug planner auto[^\n]*\n)+" + info));
  EXPECT_EQ(heddle({"serve", "fleet.yaml", "--log-level", "warn"}).err,
            "heddle: --log-level warn: expected debug, info, warning or error\n");
}

}  // namespace
}  // namespace heddle
