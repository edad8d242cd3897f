#include "heddle/base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>
#include <vector>

#include "heddle/base/file_calls.h"

namespace heddle {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "heddle_file_test_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    fs::permissions(folder_, fs::perms::owner_all);
    fs::remove_all(folder_);
  }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_)) found.insert(entry.path().filename());
    return found;
  }
  std::string folder_;
};

TEST_F(Files, PiecesAreWrittenAsOneFileOrNotAtAll) {
  const auto pieces = [](const AppendPiece& append) -> Status {
    HEDDLE_RETURN_IF_ERROR(append("one, "));
    return append("two");
  };
  ASSERT_TRUE(write_file_atomic(path("f"), pieces).ok());
  EXPECT_EQ(read_file(path("f")).value(), "one, two");
  const auto broken = [](const AppendPiece& append) -> Status {
    HEDDLE_RETURN_IF_ERROR(append("three"));
    return invalid_input("no more");
  };
  EXPECT_EQ(write_file_atomic(path("f"), broken).error().message(), "no more");
  EXPECT_EQ(read_file(path("f")).value(), "one, two") << "the old content stays";
}

TEST_F(Files, WhatIsWrittenIsRead) {
  const std::string content("a\0b\n\xff", 5);
  ASSERT_TRUE(write_file_atomic(path("f"), content).ok());
  EXPECT_EQ(*read_file(path("f")), content);
  ASSERT_TRUE(write_file_atomic(path("f"), "").ok());
  EXPECT_EQ(*read_file(path("f")), "");
  const std::string large(300'000, 'x');
  ASSERT_TRUE(write_file_atomic(path("f"), large).ok());
  EXPECT_EQ(*read_file(path("f")), large);
  EXPECT_EQ(names(), std::set<std::string>{"f"});
  EXPECT_TRUE(file_exists(path("f")));
  EXPECT_FALSE(file_exists(path("g")));
}

TEST_F(Files, FilesOfAFolderAreListedByTheirEndings) {
  fs::create_directory(path("below"));
  for (const char* name : {"b.json", "a.json", "c.onnx", "d.txt", "below/e.json"})
    ASSERT_TRUE(write_file_atomic(path(name), "").ok());
  constexpr std::string_view kJson[] = {".json"}, kBoth[] = {".json", ".onnx"};
  EXPECT_EQ(*files_in(folder_, kJson), (std::vector{path("a.json"), path("b.json")}));
  EXPECT_EQ(*files_in(folder_, kBoth), (std::vector{path("a.json"), path("b.json"), path("c.onnx")}));
  EXPECT_EQ(*files_in(folder_, kJson, true),
            (std::vector{path("a.json"), path("b.json"), path("below/e.json")}));
  const auto nowhere = files_in(path("nowhere"), kJson);
  ASSERT_FALSE(nowhere.ok());
  EXPECT_THAT(nowhere.error().to_string(), HasSubstr("cannot list"));
}

TEST_F(Files, ReadingSaysWhatIsWrong) {
  const auto missing = read_file(path("none"));
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code(), Code::kNotFound);
  EXPECT_EQ(missing.error().to_string(), path("none") + ": cannot open: No such file or directory");
  EXPECT_THAT(read_file(folder_).error().to_string(), HasSubstr("is a directory, expected a file"));
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(read_file(path("pipe")).error().to_string(), HasSubstr("not a regular file"));
  ASSERT_TRUE(write_file_atomic(path("f"), "12345").ok());
  EXPECT_THAT(read_file(path("f"), 4).error().to_string(), HasSubstr("larger than the 4 B"));
  EXPECT_EQ(*read_file(path("f"), 5), "12345");
}

TEST_F(Files, TheHeadOfWhatCannotBeReadIsEmpty) {
  ASSERT_TRUE(write_file_atomic(path("f"), "12345").ok());
  EXPECT_EQ(file_head(path("f"), 3), "123");
  EXPECT_EQ(file_head(path("f"), 100), "12345");
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  for (const auto& name : {path("pipe"), path("none"), folder_}) EXPECT_EQ(file_head(name, 3), "") << name;
}

TEST_F(Files, FilesThatHideTheirSizeAreReadWholeAndLimited) {
  const auto status = read_file("/proc/self/status");
  ASSERT_TRUE(status.ok());
  EXPECT_THAT(*status, HasSubstr("Pid:"));
  EXPECT_FALSE(read_file("/proc/self/status", 10).ok());
}

TEST_F(Files, AFullDeviceIsAnError) {
  const Status status = write_file_atomic("/dev/full", "x");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Code::kIo);
  EXPECT_EQ(status.error().to_string(), "/dev/full: cannot write: No space left on device");
  EXPECT_TRUE(write_file_atomic("/dev/null", "x").ok());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

// The disk fills up in the middle: a child process may write only so much.
TEST_F(Files, ADiskThatFillsUpLeavesTheOldFile) {
  ASSERT_TRUE(write_file_atomic(path("f"), "old").ok());
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{65536, 65536};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const Status status = write_file_atomic(path("f"), std::string(1 << 20, 'x'));
    ::_exit(!status.ok() && status.error().code() == Code::kIo ? 0 : 1);
  }
  int result = -1;
  ASSERT_EQ(::waitpid(child, &result, 0), child);
  EXPECT_EQ(result, 0);
  EXPECT_EQ(*read_file(path("f")), "old");
  EXPECT_EQ(names(), std::set<std::string>{"f"});
}

TEST_F(Files, WhatCannotBeReplacedIsAnErrorAndLeavesNoLitter) {
  ASSERT_TRUE(fs::create_directory(path("d")));
  EXPECT_THAT(write_file_atomic(path("d"), "x").error().to_string(), HasSubstr("is a directory"));
  const Status missing = write_file_atomic(path("none/f"), "x");
  EXPECT_EQ(missing.error().code(), Code::kNotFound);
  EXPECT_THAT(missing.error().to_string(), HasSubstr("none'; create it first"));
  EXPECT_FALSE(write_file_atomic("", "x").ok());
  EXPECT_FALSE(write_file_atomic(path(std::string(300, 'n')), "x").ok());
  EXPECT_EQ(names(), std::set<std::string>{"d"});
}

TEST_F(Files, AFolderWithoutPermissionIsAnError) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_EQ(write_file_atomic(path("f"), "x").error().code(), Code::kIo);
}

TEST_F(Files, ModeAndLinksSurviveAWrite) {
  ASSERT_TRUE(write_file_atomic(path("f"), "old").ok());
  fs::permissions(path("f"), fs::perms(0640));
  fs::create_symlink("f", path("link"));
  ASSERT_TRUE(write_file_atomic(path("link"), "new").ok());
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(*read_file(path("f")), "new");
  EXPECT_EQ(fs::status(path("f")).permissions(), fs::perms(0640));
}

TEST_F(Files, ReadersSeeTheOldOrTheNewContentAndNeverHalf) {
  const std::string a(100'000, 'a'), b(50'000, 'b');
  ASSERT_TRUE(write_file_atomic(path("f"), a).ok());
  std::vector<std::thread> writers;
  for (const std::string& content : {a, b}) {
    writers.emplace_back([this, content] {
      for (int i = 0; i < 20; ++i) EXPECT_TRUE(write_file_atomic(path("f"), content).ok());
    });
  }
  for (int i = 0; i < 200; ++i) {
    const auto seen = read_file(path("f"));
    ASSERT_TRUE(seen.ok());
    EXPECT_TRUE(*seen == a || *seen == b) << seen->size();
  }
  for (auto& writer : writers) writer.join();
  EXPECT_EQ(names(), std::set<std::string>{"f"});
}

TEST_F(Files, ABareNameGoesToTheWorkingFolder) {
  const auto before = fs::current_path();
  fs::current_path(folder_);
  const Status status = write_file_atomic("bare", "x");
  fs::current_path(before);
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(*read_file(path("bare")), "x");
}

// Keeps a list of the calls, of which one fails.
class ListedCalls final : public FileCalls {
 public:
  explicit ListedCalls(std::string fails) : fails_(std::move(fails)) {}
  int create(const std::string&, std::optional<unsigned>) override { return call("create", 7); }
  int write(int, std::string_view) override { return call("write", 0); }
  int sync(int) override { return call("sync", 0); }
  int close(int) override { return call("close", 0); }
  int rename(const std::string&, const std::string&) override { return call("rename", 0); }
  int link(const std::string&, const std::string&) override { return call("link", 0); }
  int remove(const std::string&) override { return call("remove", 0); }
  int make_folder(const std::string&) override { return call("make_folder", 0); }
  int check_folder(const std::string&) override { return call("check_folder", 0); }
  int sync_folder(const std::string& path) override { return call("sync_folder " + path, 0); }
  Result<std::string> read(const std::string&, int64_t) override { return std::string(); }
  Result<std::vector<std::string>> list(const std::string&) override { return std::vector<std::string>(); }
  std::string calls;

 private:
  int call(const std::string& name, int works) {
    calls += (calls.empty() ? "" : ", ") + name;
    return name.starts_with(fails_) ? -EIO : works;
  }
  const std::string fails_;
};

TEST(ReplacedFiles, AreOnTheDiskBeforeTheyAreThere) {
  ListedCalls calls("nothing");
  EXPECT_TRUE(replace_file(calls, "d/t", "d/f", "content").ok());
  EXPECT_EQ(calls.calls, "create, write, sync, close, rename, sync_folder d");
}

TEST(ReplacedFiles, ReportWhicheverCallFails) {
  for (const std::string fails : {"create", "write", "sync", "close", "rename", "sync_folder"}) {
    ListedCalls calls(fails);
    const auto status = replace_file(calls, "d/t", "d/f", "content");
    ASSERT_FALSE(status.ok()) << fails;
    EXPECT_THAT(status.error().to_string(), HasSubstr("d/f: cannot ")) << fails;
    EXPECT_EQ(calls.calls.ends_with("remove"), fails != "create" && fails != "sync_folder") << calls.calls;
    EXPECT_EQ(calls.calls.find("sync_folder") != std::string::npos, fails == "sync_folder") << calls.calls;
  }
}

TEST(NewFiles, AreOnTheDiskBeforeTheyAreThere) {
  ListedCalls calls("nothing");
  EXPECT_TRUE(put_file(calls, "d/f", "content").value());
  EXPECT_EQ(calls.calls, "create, write, sync, close, link, remove, sync_folder d");
}

TEST_F(Files, ANameThatIsTakenStaysAsItIs) {
  EXPECT_TRUE(put_file(system_files(), path("f"), "first").value());
  std::ofstream(path("f.0.tmp")) << "of a crash";
  EXPECT_FALSE(put_file(system_files(), path("f"), "second").value());
  EXPECT_EQ(*read_file(path("f")), "first");
  EXPECT_EQ(names(), (std::set<std::string>{"f", "f.0.tmp"}));
}

TEST(Folders, OfPaths) {
  EXPECT_EQ(parent_folder("a/b"), "a");
  EXPECT_EQ(parent_folder("a/b/"), "a");
  EXPECT_EQ(parent_folder("a"), ".");
  EXPECT_EQ(parent_folder("/a"), "/");
  EXPECT_EQ(parent_folder("/"), "/");
}

}  // namespace
}  // namespace heddle
