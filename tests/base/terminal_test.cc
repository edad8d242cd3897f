// When there are colours, and what they leave unchanged.
#include "heddle/base/terminal.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

TEST(Color, IsForTerminalsUnlessTheUserSaysOtherwise) {
  EXPECT_TRUE(has_color(ColorWhen::kAuto, true, nullptr));
  EXPECT_TRUE(has_color(ColorWhen::kAuto, true, "")) << "NO_COLOR counts only if it is not empty";
  EXPECT_FALSE(has_color(ColorWhen::kAuto, true, "1"));
  EXPECT_FALSE(has_color(ColorWhen::kAuto, false, nullptr));
  EXPECT_TRUE(has_color(ColorWhen::kAlways, false, "1"));
  EXPECT_FALSE(has_color(ColorWhen::kNever, true, nullptr));
}

TEST(Color, PaintsNothingForMachines) {
  set_color(ColorWhen::kAlways, /*for_machines=*/true);
  EXPECT_EQ(painted(Ink::kRed, "no"), "no");
  EXPECT_EQ(painted_error(Ink::kRed, "no"), "\x1b[1;31mno\x1b[0m");
  set_color(ColorWhen::kNever, /*for_machines=*/false);
  EXPECT_EQ(painted_error(Ink::kRed, "no"), "no");
}

TEST(Color, ComesOffAgain) {
  set_color(ColorWhen::kAlways, /*for_machines=*/false);
  EXPECT_EQ(painted(Ink::kBold, ""), "");
  EXPECT_EQ(without_color("a " + painted(Ink::kBold, "b") + painted(Ink::kYellow, "c") + " d"), "a bc d");
  EXPECT_EQ(without_color("half an escape \x1b["), "half an escape \x1b[");
  set_color(ColorWhen::kNever, /*for_machines=*/false);
}

TEST(Controls, OfNamesReachNoTerminal) {
  EXPECT_EQ(without_controls("a\tb\n"), "a\tb\n");
  EXPECT_EQ(without_controls("\x1b]0;title\x07 \x1b[2J\r\x7f"), "?]0;title? ?[2J??");
  EXPECT_EQ(without_controls("\xc2\x9b"
                             "2J \xc2\xa0 \xc3\xa9 \xc2"),
            "?2J \xc2\xa0 \xc3\xa9 \xc2");
  EXPECT_EQ(without_controls("\x1b[1"), "?[1");
  set_color(ColorWhen::kAlways, /*for_machines=*/false);
  const auto coloured = painted(Ink::kRed, "a") + painted(Ink::kDim, "b");
  EXPECT_EQ(without_controls(coloured), coloured);
  set_color(ColorWhen::kNever, /*for_machines=*/false);
}

TEST(Color, HasThreeChoices) {
  EXPECT_EQ(color_when("always"), ColorWhen::kAlways);
  EXPECT_EQ(color_when("yes"), std::nullopt);
}

}  // namespace
}  // namespace heddle
