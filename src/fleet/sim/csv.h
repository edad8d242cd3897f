// CSV tables with one header line, without quoting.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "heddle/base/status.h"

namespace heddle {

class CsvTable {
 public:
  // Errors carry the path and the line.
  static Result<CsvTable> read(const std::string& path);

  size_t rows() const { return rows_.size(); }
  bool has(const std::string& column) const { return columns_.contains(column); }
  // Fields of row 0..rows()-1. A missing column, or text that is no number in the range, is an error that
  // names the place.
  Result<std::string> text(size_t row, const std::string& column) const;
  Result<double> number(size_t row, const std::string& column, double min, double max) const;
  Result<int64_t> whole(size_t row, const std::string& column, int64_t min, int64_t max) const;
  Error error(size_t row, std::string message) const;

 private:
  std::string path_;
  std::map<std::string, size_t> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace heddle
