#include "csv.h"

#include <charconv>
#include <cmath>

#include "heddle/base/file.h"
#include "heddle/base/spelling.h"

namespace heddle {
namespace {

std::vector<std::string> fields_of(std::string_view line) {
  std::vector<std::string> fields(1);
  for (const char c : line) {
    if (c == ',') {
      fields.emplace_back();
    } else if (c != '\r') {
      fields.back() += c;
    }
  }
  return fields;
}

}  // namespace

Result<CsvTable> CsvTable::read(const std::string& path) {
  HEDDLE_ASSIGN_OR_RETURN(const auto text, read_file(path, int64_t{1} << 28));
  CsvTable table;
  table.path_ = path;
  size_t begin = 0;
  bool header = true;
  while (begin < text.size()) {
    size_t end = text.find('\n', begin);
    if (end == std::string::npos) end = text.size();
    auto fields = fields_of(std::string_view(text).substr(begin, end - begin));
    begin = end + 1;
    if (header) {
      for (size_t i = 0; i < fields.size(); ++i)
        if (!table.columns_.emplace(fields[i], i).second)
          return Error(Code::kInvalidInput, "two columns are named " + quote_text(fields[i]))
              .with_context(path + ":1");
      header = false;
      continue;
    }
    table.rows_.push_back(std::move(fields));
    if (table.rows_.back().size() != table.columns_.size())
      return table.error(table.rows() - 1, "has " + std::to_string(table.rows_.back().size()) +
                                               " fields; the header has " +
                                               std::to_string(table.columns_.size()));
  }
  if (header)
    return Error(Code::kInvalidInput, "the file is empty; expected a header line").with_context(path);
  return table;
}

Error CsvTable::error(size_t row, std::string message) const {
  return Error(Code::kInvalidInput, std::move(message)).with_context(path_ + ":" + std::to_string(row + 2));
}

Result<std::string> CsvTable::text(size_t row, const std::string& column) const {
  const auto found = columns_.find(column);
  if (found == columns_.end())
    return Error(Code::kInvalidInput, "there is no column " + quote_text(column)).with_context(path_ + ":1");
  return rows_[row][found->second];
}

Result<double> CsvTable::number(size_t row, const std::string& column, double min, double max) const {
  HEDDLE_ASSIGN_OR_RETURN(const auto field, text(row, column));
  double value = 0;
  const auto [end, code] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (code != std::errc() || end != field.data() + field.size() || !(value >= min && value <= max))
    return error(row, "the column " + quote_text(column) + " has " + quote_text(field) +
                          "; expected a number from " + std::to_string(min) + " to " + std::to_string(max));
  return value;
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
