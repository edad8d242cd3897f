// `heddle server status --watch`: blocks in a pipe, one place on a terminal, JSON lines, and its end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>

#include "fleet_clients.h"

namespace heddle {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class StatusWatch : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(served_.serves()); }
  std::vector<std::string> watch(const std::vector<std::string>& more) const {
    std::vector<std::string> command = {HEDDLE_PROGRAM, "server",
                                        "status",       "--watch",
                                        "0.2",          "http://127.0.0.1:" + std::to_string(served_.port())};
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }
  // The next block, up to its empty line at the end.
  static std::string block(const Process& watching) {
    std::string text;
    for (auto line = watching.line();; line = watching.line()) {
      text += line + "\n";
      if (line.empty() && text.find("\nworker") != std::string::npos) return text;
      if (text.size() > 20000) return text;
    }
  }

  ServedFleet served_{front_and_back(1), {"--workers", "1", "--lease", "0.5"}};
};

TEST_F(StatusWatch, PrintsABlockEachIntervalUntilItIsInterrupted) {
  Clients clients(served_.port(), 2);
  let_run(clients, 20);
  Process watching(watch({}));
  const auto first = block(watching);
  EXPECT_THAT(first, AllOf(HasSubstr("two-parts at 20"), HasSubstr(": serving, plans so far: 1\n"),
                           HasSubstr("planned  in time"), HasSubstr("class  devices  in plan"),
                           HasSubstr("worker-0  connected")));
  EXPECT_THAT(first, Not(HasSubstr("\x1b[")));
  const auto second = block(watching);
  EXPECT_THAT(second, AllOf(HasSubstr(" req/s"), HasSubstr("100.0 %"), HasSubstr(" ms"), HasSubstr("/s\n")));
  watching.signal(SIGINT);
  EXPECT_EQ(watching.wait(), 0);
}

TEST_F(StatusWatch, TheServerMayFollowTheFlag) {
  Process watching({HEDDLE_PROGRAM, "server", "status", "--watch",
                    "http://127.0.0.1:" + std::to_string(served_.port()), "--json"});
  const auto json = parse_json(watching.line());
  ASSERT_TRUE(json.ok()) << json.error().to_string();
  EXPECT_EQ((*json)["fleet"], "two-parts");
}

TEST_F(StatusWatch, GivesALineOfJsonEachInterval) {
  Process watching(watch({"--json"}));
  for (int i = 0; i < 3; ++i) {
    const auto line = watching.line();
    const auto json = parse_json(line);
    ASSERT_TRUE(json.ok()) << line;
    EXPECT_EQ((*json)["fleet"], "two-parts");
    EXPECT_EQ((*json)["pools"][0]["lost"], 0);
  }
  watching.signal(SIGTERM);
  EXPECT_EQ(watching.wait(), 0);
}

TEST_F(StatusWatch, GoesOnWhenTheServerIsGoneAndNotWithoutOne) {
  Process watching(watch({"--json"}));
  EXPECT_THAT(watching.line(), HasSubstr("two-parts"));
  served_.process().signal(SIGKILL);
  EXPECT_TRUE(eventually([&] { return watching.line().find("\"error\"") != std::string::npos; }));
  watching.signal(SIGINT);
  EXPECT_EQ(watching.wait(), 0);
  Process none(watch({}));
  EXPECT_EQ(none.wait(), 2);
}

TEST_F(StatusWatch, StaysInItsPlaceOnATerminal) {
  int terminal = -1;
  winsize size{.ws_row = 6, .ws_col = 60, .ws_xpixel = 0, .ws_ypixel = 0};
  const auto command = watch({});
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    std::vector<char*> argv;
    for (const auto& a : command) argv.push_back(const_cast<char*>(a.c_str()));
    argv.push_back(nullptr);
    ::setenv("TERM", "xterm", 1);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  std::string text;
  char part[4096];
  size_t blocks = 0;
  while (blocks < 3) {
    const ssize_t n = ::read(terminal, part, sizeof part);
    if (n <= 0) break;
    text.append(part, static_cast<size_t>(n));
    blocks = 0;
    for (size_t at = 0; (at = text.find("\x1b[J", at)) != std::string::npos; ++at) ++blocks;
  }
  ::kill(child, SIGINT);
  while (::read(terminal, part, sizeof part) > 0) {
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ::close(terminal);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_THAT(text, testing::StartsWith("\x1b[2J\x1b[Htwo-parts at "));
  // No block is longer than the terminal is high, or it would scroll.
  const auto second = text.find("\x1b[J") + 3;
  const auto third = text.find("\x1b[J", second);
  ASSERT_NE(third, std::string::npos);
  const auto lines =
      std::count(text.begin() + static_cast<long>(second), text.begin() + static_cast<long>(third), '\n');
  EXPECT_LE(lines, 5);
  EXPECT_EQ(text.compare(second, 3, "\x1b[H"), 0);
}

}  // namespace
}  // namespace heddle
