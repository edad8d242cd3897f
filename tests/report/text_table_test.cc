#include "heddle/report/text_table.h"

#include <gtest/gtest.h>

#include <sstream>

#include "heddle/base/terminal.h"

namespace heddle {
namespace {

TEST(TextTable, AlignsColumnsUnderTheirTitles) {
  TextTable table({{"name"}, {"time", TextTable::Align::kRight}});
  table.add_row({"a", "1 us"});
  table.add_row({"long name", "100 us"});
  EXPECT_EQ(table.to_string(),
            "name         time\n"
            "-----------------\n"
            "a            1 us\n"
            "long name  100 us\n");
}

TEST(TextTable, NeverExceedsTheWidthAndCutsTheWidestLeftColumn) {
  TextTable table({{"left"}, {"right", TextTable::Align::kRight}});
  table.add_row({std::string(300, 'x'), "123456789"});
  std::istringstream lines(table.to_string(60));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 60U) << line;
  EXPECT_NE(table.to_string(60).find("..."), std::string::npos);
  EXPECT_NE(table.to_string(60).find("123456789"), std::string::npos);
}

TEST(TextTable, CutsTheFirstColumnLast) {
  TextTable table({{"name"}, {"description"}});
  const std::string name(30, 'n');
  table.add_row({name, std::string(30, 'd')});
  EXPECT_NE(table.to_string(50).find(name + "  ddd"), std::string::npos);
  std::istringstream lines(table.to_string(30));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 30U) << line;
  EXPECT_NE(table.to_string(15).find(name + "  "), std::string::npos) << "does not fit in any case";
}

TEST(TextTable, CountsUtf8CharactersNotBytes) {
  TextTable table({{"name", TextTable::Align::kLeft, 5}, {"n"}});
  table.add_row({"äöüßé", "1"});
  table.add_row({"äöüßéx", "2"});
  EXPECT_NE(table.to_string(100).find("äöüßé  1"), std::string::npos);
  EXPECT_NE(table.to_string(100).find("äö...  2"), std::string::npos);
}

TEST(TextTable, CutsNothingWithoutAWidth) {
  const std::string longest(300, 'x');
  TextTable table({{"name", TextTable::Align::kLeft, 5}, {"value", TextTable::Align::kRight}});
  table.add_row({longest, "7"});
  EXPECT_NE(table.to_string().find(longest + "      7"), std::string::npos);
}

TEST(TextTable, DrawsRulesBetweenRows) {
  TextTable table({{"a"}});
  table.add_row({"1"});
  table.add_rule();
  table.add_row({"2"});
  EXPECT_EQ(table.to_string(), "a\n-\n1\n-\n2\n");
}

TEST(TextTable, AlignsColouredCellsAsPlainOnes) {
  const auto table_text = [](ColorWhen when) {
    set_color(when, /*for_machines=*/false);
    TextTable table({{"check"}, {"state", TextTable::Align::kRight}, {"detail"}});
    table.add_row({"one", painted(Ink::kGreen, "ok"), "fine"});
    table.add_row({painted(Ink::kRed, "a longer name that is cut"), painted(Ink::kRed, "FAILS"), "broken"});
    return table.to_string(30) + wrapped(painted(Ink::kBold, "some words") + " and more of them", 12, 2);
  };
  const auto plain = table_text(ColorWhen::kNever), colored = table_text(ColorWhen::kAlways);
  set_color(ColorWhen::kNever, /*for_machines=*/false);
  EXPECT_NE(colored, plain);
  EXPECT_EQ(without_color(colored), plain);
  EXPECT_NE(plain.find("..."), std::string::npos);
}

}  // namespace
}  // namespace heddle
