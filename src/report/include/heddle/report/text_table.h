// Plain text tables for people: aligned, and as wide as the terminal.
#pragma once

#include <string>
#include <vector>

namespace heddle {

// A share for a cell: percent(0.123) is "12.3 %".
std::string percent(double share);
// A change: signed_percent(0.1) is "+10.0 %".
std::string signed_percent(double change);

// Breaks lines at blanks to at most `width` characters and ends with a newline. The first line begins at column
// `first`, where the caller has written already; the others are indented. A word is never broken.
std::string wrapped(const std::string& text, size_t width, size_t indent, size_t first = 0);

// How wide the process's tables may be, in characters; 0, the default: nothing is cut. Not thread-safe: for the
// start of a program that writes to a terminal.
void set_table_width(int width);
int table_width();

class TextTable {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
    int max_width = 0;  // if the table's width is limited: longer cells end in "..."; 0: no limit of its own
  };
  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // Missing cells are empty; surplus cells are a programming error (asserted).
  void add_row(std::vector<std::string> cells);
  void add_rule();  // a horizontal line
  void set_left_out(size_t rows) {
    left_out_ = rows;
  }  // so many further rows are only counted, below the table
  // Ends with a newline. If the columns exceed `width` (0: no limit), the widest left-aligned ones are cut; the first
  // one last, and only if the table then fits. Columns of numbers are not. Widths count UTF-8 characters, without the
  // escapes of painted(). In a terminal headings are dim.
  std::string to_string(int width = table_width()) const;
  std::string to_html() const;  // a table that scrolls sideways where it is too wide

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;  // an empty row is a rule
  size_t left_out_ = 0;
};

// For columns of numbers.
inline constexpr auto kRight = TextTable::Align::kRight;

}  // namespace heddle
