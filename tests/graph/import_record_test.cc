// The record of imports: which models need no trial in a child process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "graph/model_files.h"
#include "graph/onnx_writer.h"
#include "heddle/base/file.h"
#include "heddle/base/log.h"
#include "heddle/graph/model.h"
#include "heddle/graph/model_content.h"

namespace heddle {
namespace {

using namespace onnx_writer;
namespace fs = std::filesystem;

class ImportRecords : public testing::Test {
 protected:
  void SetUp() override {
    set_log(LogLevel::kDebug, LogForm::kElapsed);
    forget();
  }
  void TearDown() override {
    keep_imports_in("");
    set_log(LogLevel::kError, LogForm::kElapsed);
  }
  // As a new process that shares the folder.
  void forget() const { keep_imports_in(markers()); }
  std::string markers() const { return files_.path("imported"); }
  std::string only_marker() const {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(markers())) all.push_back(entry.path().string());
    EXPECT_EQ(all.size(), 1U);
    return all.empty() ? "" : all[0];
  }
  static bool is_tried(const std::string& path, const ImportOptions& options = {}) {
    testing::internal::CaptureStderr();
    const auto model = Model::load(path, options);
    const auto said = testing::internal::GetCapturedStderr();
    EXPECT_TRUE(model.ok()) << model.error().to_string();
    const bool tried = said.find("after a trial") != std::string::npos;
    EXPECT_NE(tried, said.find("without a trial") != std::string::npos) << said;
    return tried;
  }
  std::string add_weight(float weight) const {
    return files_.write("m.onnx", model({{node("Add", {"x", "w"}, {"y"})},
                                         {value("x", {1})},
                                         {value("y", {1})},
                                         {float_tensor("w", {1}, {weight})}}));
  }
  std::string with_external(const std::vector<float>& weights, const std::string& location = "w.bin") const {
    files_.write("w.bin", raw_of(weights));
    return files_.write("m.onnx", model({{node("Add", {"x", "w"}, {"y"})},
                                         {value("x", {2})},
                                         {value("y", {2})},
                                         {external_tensor("w", {2}, {{"location", location}})}}));
  }
  TestFolder files_;
};

TEST_F(ImportRecords, HoldForTheSameBytesAndOptionsInEveryProcess) {
  const auto path = add_weight(1);
  EXPECT_TRUE(is_tried(path));
  EXPECT_FALSE(is_tried(path));
  forget();
  EXPECT_FALSE(is_tried(path));
  EXPECT_TRUE(is_tried(path, {.split_bytes = 1000}));
  EXPECT_TRUE(is_tried(path, {.batch = 3}));
  EXPECT_TRUE(is_tried(path, {.map_weights = true}));
  EXPECT_FALSE(is_tried(path));
  EXPECT_TRUE(is_tried(add_weight(2)));
  EXPECT_FALSE(is_tried(add_weight(1)));
}

TEST_F(ImportRecords, AreSharedByTwoProcesses) {
  const auto path = add_weight(1);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(is_tried(path) ? 0 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "the first process tries the model";
  EXPECT_FALSE(is_tried(path));
}

// A file that was made to have the key of a trusted model has another SHA-256.
TEST_F(ImportRecords, OfTheSameKeyAndOtherBytesAreNotTaken) {
  const auto path = add_weight(1);
  EXPECT_TRUE(is_tried(path));
  const auto marker = only_marker();
  const auto digest = read_file(marker);
  ASSERT_TRUE(digest.ok());
  EXPECT_EQ(digest->size(), 64U);
  for (const std::string& other : {std::string(64, 'a'), digest->substr(1), *digest + "0"}) {
    ASSERT_TRUE(write_file_atomic(marker, other).ok());
    forget();
    EXPECT_TRUE(is_tried(path)) << other;
    EXPECT_EQ(read_file(marker).value(), *digest) << "and now it holds for this model";
  }
}

TEST_F(ImportRecords, OfTheOldFormAreIgnored) {
  const auto path = add_weight(1);
  EXPECT_TRUE(is_tried(path));
  const auto marker = only_marker();
  ASSERT_TRUE(write_file_atomic(marker, "").ok());
  forget();
  EXPECT_TRUE(is_tried(path));
  forget();
  EXPECT_FALSE(is_tried(path));
}

// The key of a model with other files holds only their sizes.
TEST_F(ImportRecords, CoverExternalData) {
  const auto path = with_external({1, 2});
  EXPECT_TRUE(is_tried(path));
  EXPECT_FALSE(is_tried(path));
  with_external({1, 3});
  EXPECT_TRUE(is_tried(path)) << "of this process";
  forget();
  with_external({1, 4});
  EXPECT_TRUE(is_tried(path)) << "of the folder";
  EXPECT_FALSE(is_tried(path));
}

TEST_F(ImportRecords, CoverTheWeightsOfOpenVinoModels) {
  const auto path = files_.write("m.xml", R"(<?xml version="1.0"?>
<net name="m" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="2" element_type="f32"/>
<output><port id="0" precision="FP32" names="x"><dim>2</dim></port></output></layer>
<layer id="1" name="w" type="Const" version="opset1"><data element_type="f32" shape="2" offset="0" size="8"/>
<output><port id="0" precision="FP32"><dim>2</dim></port></output></layer>
<layer id="2" name="a" type="Add" version="opset1"><data auto_broadcast="numpy"/>
<input><port id="0"><dim>2</dim></port><port id="1"><dim>2</dim></port></input>
<output><port id="2" precision="FP32" names="a"><dim>2</dim></port></output></layer>
<layer id="3" name="y" type="Result" version="opset1"><input><port id="0"><dim>2</dim></port></input></layer>
</layers><edges><edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
<edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
<edge from-layer="2" from-port="2" to-layer="3" to-port="0"/></edges></net>)");
  EXPECT_THAT(Model::load(path).error().to_string(), testing::HasSubstr("in 'm.bin', which is not there"));
  files_.write("m.bin", raw_of<float>({1, 2}));
  EXPECT_TRUE(is_tried(path));
  EXPECT_FALSE(is_tried(path));
  files_.write("m.bin", raw_of<float>({1, 3}));
  EXPECT_TRUE(is_tried(path));
  EXPECT_FALSE(is_tried(path));
  files_.write("m.pdiparams", "a file that appears");
  EXPECT_TRUE(is_tried(path));
}

// Chunks of a large file are hashed by several threads.
TEST_F(ImportRecords, CoverEveryChunkOfLargeFiles) {
  std::vector<float> weights(5 << 20);
  const auto write = [&] {
    return files_.write("m.onnx", model({{node("Add", {"x", "w"}, {"y"})},
                                         {value("x", {1})},
                                         {value("y", {5 << 20})},
                                         {float_tensor("w", {5 << 20}, weights)}}));
  };
  const auto path = write();
  EXPECT_TRUE(is_tried(path));
  const auto digest = read_file(only_marker()).value();
  write();
  forget();
  EXPECT_FALSE(is_tried(path));
  for (const size_t at : {size_t{0}, weights.size() / 2, weights.size() - 1}) {
    weights[at] = 1;
    write();
    EXPECT_TRUE(is_tried(path)) << at;
  }
}

TEST_F(ImportRecords, InFoldersThatOthersWriteToAreIgnored) {
  const auto path = add_weight(1);
  EXPECT_TRUE(is_tried(path));
  fs::permissions(markers(), fs::perms::others_write, fs::perm_options::add);
  forget();
  EXPECT_TRUE(is_tried(path));
  fs::permissions(markers(), fs::perms::others_write, fs::perm_options::remove);
  forget();
  EXPECT_FALSE(is_tried(path));
}

TEST_F(ImportRecords, ThatCannotBeWrittenOnlyCostATrial) {
  const auto path = add_weight(1);
  keep_imports_in(files_.write("file", "") + "/imported");
  EXPECT_TRUE(is_tried(path));
  EXPECT_FALSE(is_tried(path)) << "this process remembers";
}

// Their trial reads no weights, so it takes less time than hashing them.
TEST_F(ImportRecords, AreNotKeptOfLargeFilesWhoseWeightsStayThere) {
  constexpr int64_t kSize = 17 << 20;
  const auto path = files_.write("m.onnx", model({{node("Add", {"x", "w"}, {"y"})},
                                                  {value("x", {1})},
                                                  {value("y", {kSize})},
                                                  {float_tensor("w", {kSize}, std::vector<float>(kSize))}}));
  EXPECT_TRUE(is_tried(path, {.map_weights = true}));
  EXPECT_TRUE(is_tried(path, {.map_weights = true}));
  EXPECT_FALSE(fs::exists(markers()));
}

}  // namespace
}  // namespace heddle
