#include "heddle/base/csv.h"

#include <gtest/gtest.h>

#include "heddle/base/file.h"

namespace heddle {
namespace {

// The message of the error that reading `text` gives; "" if there is none.
std::string csv_error(const std::string& text) {
  const std::string path = ::testing::TempDir() + "csv_test.csv";
  EXPECT_TRUE(write_file_atomic(path, text).ok());
  const char* const needed[] = {"name", "rate"};
  const auto table = CsvTable::read(path, needed);
  if (table.ok()) return "";
  const std::string message = table.error().to_string();
  EXPECT_NE(message.find(path), std::string::npos) << message;
  return message.substr(message.find(path) + path.size());
}

TEST(Csv, ErrorsNameTheLine) {
  EXPECT_EQ(csv_error("\n\nname,rate\n\na,1\n"), "");
  EXPECT_EQ(csv_error("name,name\n"), ":1: two columns are named 'name'");
  EXPECT_EQ(csv_error("\n\nname,name\n"), ":3: two columns are named 'name'");
  EXPECT_EQ(csv_error("\n\r\nname\n"), ":3: there is no column 'rate'");
  EXPECT_EQ(csv_error("name,rate\n\na\n"), ":3: the line has 1 fields; the header has 2");
  EXPECT_EQ(csv_error("name,rate\na,\"1\n"), ":2: a quoted field does not end on its line");
  EXPECT_EQ(csv_error("\n"), ": the file is empty; expected a header line");
}

}  // namespace
}  // namespace heddle
