// CSV tables with one header line; fields may be quoted as in RFC 4180, but not hold line breaks.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "heddle/base/status.h"

namespace heddle {

class CsvTable {
 public:
  // Every line has as many fields as the header; empty lines count for nothing. `needed`: columns that must be
  // there. Errors carry the path and the line.
  static Result<CsvTable> read(const std::string& path, std::span<const char* const> needed = {});

  size_t rows() const { return rows_.size(); }
  bool has(const std::string& column) const { return columns_.contains(column); }
  // Fields of row 0..rows()-1. A missing column, or text that is no number in the range, is an error that
  // names the place.
  Result<std::string> text(size_t row, const std::string& name) const;
  Result<double> number(size_t row, const std::string& column, double min, double max) const;
  Result<int64_t> whole(size_t row, const std::string& column, int64_t min, int64_t max) const;
  Error error(size_t row, std::string message) const;

 private:
  Result<size_t> column(const std::string& name) const;
  Error error_on(size_t line, std::string message) const;

  std::string path_;
  size_t header_line_ = 0;
  std::map<std::string, size_t> columns_;
  struct Row {
    size_t line;  // in the file, from 1
    std::vector<std::string> fields;
  };
  std::vector<Row> rows_;
};

}  // namespace heddle
