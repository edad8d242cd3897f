#include "heddle/base/csv.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/errors.h"
#include "heddle/base/file.h"
#include "heddle/base/numbers.h"
#include "heddle/base/spelling.h"

namespace heddle {
namespace {

Result<std::vector<std::string>> fields_of(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += line[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else if (c != '\r') {
      fields.back() += c;
    }
  }
  if (quoted) return invalid_input("a quoted field does not end on its line");
  return fields;
}

}  // namespace

Result<CsvTable> CsvTable::read(const std::string& path, std::span<const char* const> needed) {
  HEDDLE_ASSIGN_OR_RETURN(const auto text, read_file(path, int64_t{1} << 28));
  CsvTable table;
  table.path_ = path;
  size_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const auto line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.empty() || line == "\r") continue;
    HEDDLE_ASSIGN_OR_RETURN(auto fields, with_context(fields_of(line), path + ":" + std::to_string(number)));
    if (table.columns_.empty()) {
      table.header_line_ = number;
      for (size_t i = 0; i < fields.size(); ++i)
        if (!table.columns_.emplace(fields[i], i).second)
          return table.error_on(number, "two columns are named " + quote_text(fields[i]));
      for (const char* name : needed)
        if (!table.has(name)) return table.column(name).error();
      continue;
    }
    table.rows_.push_back({number, std::move(fields)});
    const size_t count = table.rows_.back().fields.size();
    if (count != table.columns_.size())
      return table.error(table.rows() - 1, "the line has " + std::to_string(count) +
                                               " fields; the header has " +
                                               std::to_string(table.columns_.size()));
  }
  if (table.columns_.empty())
    return invalid_input("the file is empty; expected a header line").with_context(path);
  return table;
}

Error CsvTable::error_on(size_t line, std::string message) const {
  return invalid_input(std::move(message)).with_context(path_ + ":" + std::to_string(line));
}

Error CsvTable::error(size_t row, std::string message) const {
  return error_on(rows_[row].line, std::move(message));
}

Result<size_t> CsvTable::column(const std::string& name) const {
  const auto found = columns_.find(name);
  if (found == columns_.end()) return error_on(header_line_, "there is no column " + quote_text(name));
  return found->second;
}

Result<std::string> CsvTable::text(size_t row, const std::string& name) const {
  HEDDLE_ASSIGN_OR_RETURN(const size_t at, column(name));
  return rows_[row].fields[at];
}

Result<double> CsvTable::number(size_t row, const std::string& column, double min, double max) const {
  HEDDLE_ASSIGN_OR_RETURN(const auto field, text(row, column));
  const auto value = parse_number<double>(field);
  if (!value || !(*value >= min && *value <= max))
    return error(row, "the column " + quote_text(column) + " has " + quote_text(field) +
                          "; expected a number from " + std::to_string(min) + " to " + std::to_string(max));
  return *value;
}

Result<int64_t> CsvTable::whole(size_t row, const std::string& column, int64_t min, int64_t max) const {
  HEDDLE_ASSIGN_OR_RETURN(const auto value,
                          number(row, column, static_cast<double>(min), static_cast<double>(max)));
  if (value != std::floor(value))
    return error(row, "the column " + quote_text(column) + " has " + std::to_string(value) +
                          "; expected a whole number");
  return static_cast<int64_t>(value);
}

}  // namespace heddle
