// Texts of tests with one part changed.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace heddle::test {

// `text` with `by` in place of the first `what`, which must be there.
inline std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? text : text.replace(at, what.size(), by);
}

}  // namespace heddle::test
