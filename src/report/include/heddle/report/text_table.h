// Plain text tables for people: aligned, at most 100 columns wide.
#pragma once

#include <string>
#include <vector>

namespace heddle {

// A share for a cell: percent(0.123) is "12.3 %".
std::string percent(double share);

class TextTable {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
    int max_width = 0;  // longer cells are cut with an ellipsis; 0: as wide as the table allows
  };
  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // Missing cells are empty; surplus cells are a programming error (asserted).
  void add_row(std::vector<std::string> cells);
  void add_rule();  // a horizontal line
  // Ends with a newline. If the columns exceed `width`, the widest left-aligned ones are cut first. Widths
  // count UTF-8 characters.
  std::string to_string(int width = 100) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;  // an empty row is a rule
};

}  // namespace heddle
