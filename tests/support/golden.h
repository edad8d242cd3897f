// Golden files: expected texts that lie beside the tests. HEDDLE_UPDATE_GOLDEN=1 writes them anew; read the
// difference before it is committed.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "heddle/base/file.h"

namespace heddle::testing {

// Compares `actual` with the file `path`, relative to the tests' folder ("base/golden/json_errors.txt").
inline void expect_golden(const std::string& path, const std::string& actual) {
  const std::string full = std::string(HEDDLE_SOURCE_DIR) + "/tests/" + path;
  if (std::getenv("HEDDLE_UPDATE_GOLDEN") != nullptr) {
    const Status written = write_file_atomic(full, actual);
    ASSERT_TRUE(written.ok()) << written.error().to_string();
    return;
  }
  const auto expected = read_file(full);
  ASSERT_TRUE(expected.ok()) << expected.error().to_string() << "; HEDDLE_UPDATE_GOLDEN=1 writes it";
  EXPECT_EQ(*expected, actual) << "differs from tests/" << path << "; HEDDLE_UPDATE_GOLDEN=1 writes it anew";
}

}  // namespace heddle::testing
