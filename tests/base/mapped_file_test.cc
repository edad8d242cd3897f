// MappedFile: bytes as they are, and whether the file of a path is still the one that was opened.
#include "heddle/base/mapped_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "graph/model_files.h"

namespace heddle {
namespace {

TEST(MappedFile, KnowsWhenItsPathHasAnotherFile) {
  const TestFolder folder;
  const std::string path = folder.write("file", "content");
  const auto file = MappedFile::open(path, 100);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->bytes(), "content");
  EXPECT_TRUE(file->is_still(path));
  EXPECT_FALSE(file->is_still(folder.write("other", "content")));
  std::filesystem::rename(folder.path("other"), path);
  EXPECT_FALSE(file->is_still(path));
  std::filesystem::remove(path);
  EXPECT_FALSE(file->is_still(path));
  // What was opened stays.
  EXPECT_EQ(file->bytes(), "content");
}

TEST(MappedFile, PopulatingChangesNothing) {
  const TestFolder folder;
  const std::string content((size_t{9} << 20) + 5, 'x');
  const auto file = MappedFile::open(folder.write("file", content), int64_t{1} << 30);
  ASSERT_TRUE(file.ok());
  file->populate();
  EXPECT_TRUE(file->bytes() == content);
  const auto empty = MappedFile::open(folder.write("empty", ""), 100);
  ASSERT_TRUE(empty.ok());
  empty->populate();
  EXPECT_TRUE(empty->bytes().empty());
}

}  // namespace
}  // namespace heddle
