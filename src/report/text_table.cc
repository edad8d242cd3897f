#include "heddle/report/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <sstream>

#include "heddle/base/spelling.h"
#include "heddle/base/terminal.h"
#include "markup.h"

namespace heddle {
namespace {

int process_width = 0;

int width_of(const std::string& text) { return static_cast<int>(characters(without_color(text))); }

// A cut text has lost its colour.
std::string cut(const std::string& text, int width) {
  return width_of(text) <= width ? text
                                 : cut_text(without_color(text), static_cast<size_t>(std::max(0, width)));
}

std::string pad(const std::string& s, int width, TextTable::Align align) {
  const auto space = std::string(static_cast<size_t>(std::max(0, width - width_of(s))), ' ');
  return align == TextTable::Align::kRight ? space + s : s + space;
}

}  // namespace

std::string wrapped(const std::string& text, size_t width, size_t indent, size_t first) {
  std::istringstream in(text);
  std::string out, word;
  size_t at = first;
  bool begins = true;
  while (in >> word) {
    const size_t size = characters(without_color(word));
    if (!begins && at + 1 + size > width) {
      out += "\n" + std::string(indent, ' ');
      at = indent;
      begins = true;
    }
    out += (begins ? "" : " ") + word;
    at += size + (begins ? 0 : 1);
    begins = false;
  }
  return out + "\n";
}

void set_table_width(int width) { process_width = width; }
int table_width() { return process_width; }

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string signed_percent(double change) { return fmt::format("{:+.1f} %", 100 * change); }

void TextTable::add_row(std::vector<std::string> cells) {
  assert(cells.size() <= columns_.size());
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

void TextTable::add_rule() { rows_.emplace_back(); }

std::string TextTable::to_string(int width) const {
  constexpr int kGap = 2;
  std::vector<int> widths;
  int total = -kGap;
  for (size_t c = 0; c < columns_.size(); ++c) {
    int w = width_of(columns_[c].title);
    for (const auto& row : rows_) {
      if (!row.empty()) w = std::max(w, width_of(row[c]));
    }
    if (width > 0 && columns_[c].max_width > 0) w = std::min(w, columns_[c].max_width);
    widths.push_back(w);
    total += w + kGap;
  }
  // Shrink the widest left-aligned column, one character at a time, so that columns are cut evenly.
  constexpr int kLeast = 8;
  while (width > 0 && total > width) {
    int widest = -1;
    for (size_t c = 1; c < columns_.size(); ++c) {
      if (columns_[c].align != Align::kLeft || widths[c] <= kLeast) continue;
      if (widest < 0 || widths[c] > widths[static_cast<size_t>(widest)]) widest = static_cast<int>(c);
    }
    if (widest < 0) break;
    --widths[static_cast<size_t>(widest)];
    --total;
  }
  // The first column has the names that people type. It is cut only if the table then fits.
  const int excess = width > 0 ? total - width : 0;
  if (excess > 0 && columns_.front().align == Align::kLeft && widths.front() - excess >= kLeast) {
    widths.front() -= excess;
    total = width;
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string out;
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (c > 0) out += std::string(kGap, ' ');
      out += pad(cut(cells[c], widths[c]), widths[c], columns_[c].align);
    }
    while (!out.empty() && out.back() == ' ') out.pop_back();
    return out + "\n";
  };
  const std::string rule =
      painted(Ink::kDim, std::string(static_cast<size_t>(std::max(0, total)), '-')) + "\n";
  std::vector<std::string> titles;
  for (const auto& column : columns_) titles.push_back(column.title);
  std::string heading = line(titles);
  heading.pop_back();
  std::string out = painted(Ink::kDim, heading) + "\n" + rule;
  for (const auto& row : rows_) out += row.empty() ? rule : line(row);
  if (left_out_ > 0) out += "... and " + std::to_string(left_out_) + " more\n";
  return out;
}

std::string TextTable::to_html() const {
  const auto cell = [this](const char* tag, size_t column, const std::string& text) {
    const bool left = columns_[column].align == Align::kLeft;
    return std::string("<") + tag + (left ? " class=\"text\">" : ">") + escape_markup(text) + "</" + tag +
           ">";
  };
  std::string out = "<div class=\"scroll\"><table><thead><tr>";
  for (size_t c = 0; c < columns_.size(); ++c) out += cell("th", c, columns_[c].title);
  out += "</tr></thead><tbody>\n";
  for (const auto& row : rows_) {
    if (row.empty()) continue;
    out += "<tr>";
    for (size_t c = 0; c < columns_.size(); ++c) out += cell("td", c, row[c]);
    out += "</tr>\n";
  }
  out += "</tbody></table></div>\n";
  if (left_out_ > 0) out += "<p class=\"muted\">and " + std::to_string(left_out_) + " more</p>\n";
  return out;
}

}  // namespace heddle
