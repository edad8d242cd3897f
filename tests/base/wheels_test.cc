// Where Heddle finds the files of wheels.
#include "heddle/base/wheels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace heddle {
namespace {

namespace fs = std::filesystem;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class Wheels : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              (std::string("heddle_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_ / "some_wheel/.libs");
    setenv("HEDDLE_SITE_PACKAGES", folder_.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("HEDDLE_SITE_PACKAGES");
    fs::remove_all(folder_);
  }
  fs::path folder_;
};

TEST_F(Wheels, AreFoundFromTheBuildFolder) {
  const auto found = find_in_wheels("openvino/libs/libopenvino.so.*");
  ASSERT_TRUE(found.ok()) << found.error().to_string();
  EXPECT_TRUE(fs::exists(*found));
}

TEST_F(Wheels, AreFoundInTheFolderThatTheEnvironmentNames) {
  std::ofstream(folder_ / "some_wheel/.libs/libsome.so.2") << "";
  std::ofstream(folder_ / "some_wheel/.libs/libsome_c.so.2") << "";
  const auto whole = find_in_wheels("some_wheel/.libs/libsome.so.2");
  ASSERT_TRUE(whole.ok()) << whole.error().to_string();
  EXPECT_EQ(*whole, (folder_ / "some_wheel/.libs/libsome.so.2").string());
  const auto by_prefix = find_in_wheels("some_wheel/.libs/libsome.so.*");
  ASSERT_TRUE(by_prefix.ok()) << by_prefix.error().to_string();
  EXPECT_THAT(*by_prefix, EndsWith("libsome.so.2"));
  const auto folder = find_in_wheels("some_wheel/.libs");
  ASSERT_TRUE(folder.ok()) << folder.error().to_string();
}

TEST_F(Wheels, ThatAreMissingNameThePlacesAndWhatToDo) {
  const auto found = find_in_wheels("some_wheel/.libs/libother.so.*");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code(), Code::kNotFound);
  const std::string text = found.error().to_string();
  EXPECT_THAT(text, HasSubstr("some_wheel/.libs/libother.so.*"));
  EXPECT_THAT(text, HasSubstr(folder_.string()));
  EXPECT_THAT(text, HasSubstr("lib/heddle"));
  EXPECT_THAT(text, HasSubstr("HEDDLE_SITE_PACKAGES"));
}

}  // namespace
}  // namespace heddle
