// Inputs on which errors are measured: folders of samples, reference inputs, random ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "graph/onnx_writer.h"
#include "heddle/graph/model.h"
#include "heddle/graph/onnx_tensor.h"
#include "heddle/runtime/run.h"

namespace heddle {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class Calibration : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("heddle-calibration-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // A sum of `inputs` tensors of two numbers.
  std::shared_ptr<const Model> sum(int inputs) {
    using namespace onnx_writer;
    std::vector<std::string> names, values;
    for (int i = 0; i < inputs; ++i) {
      names.push_back("x" + std::to_string(i));
      values.push_back(value(names.back(), {1, 2}));
    }
    const fs::path path = folder_ / ("sum" + std::to_string(inputs) + ".onnx");
    std::ofstream(path, std::ios::binary)
        << model({{node("Sum", names, {"y"}, "sum")}, values, {value("y", {1, 2})}});
    auto loaded = Model::load(path.string());
    EXPECT_TRUE(loaded.ok()) << loaded.error().to_string();
    return *loaded;
  }

  static std::string tensor(const std::vector<float>& values, const std::vector<int64_t>& dims = {1, 2}) {
    return onnx_writer::float_tensor("t", dims, values);
  }
  void write(const fs::path& path, const std::string& bytes) const {
    fs::create_directories((folder_ / path).parent_path());
    std::ofstream(folder_ / path, std::ios::binary) << bytes;
  }
  static float first(const std::vector<TensorValue>& sample, size_t input = 0) {
    float v = 0;
    std::memcpy(&v, sample[input].data.get(), sizeof v);
    return v;
  }

  fs::path folder_;
};

TEST_F(Calibration, FilesAreSamplesOfTheOnlyInput) {
  write("samples/b.pb", tensor({2, 0}));
  write("samples/a.pb", tensor({1, 0}));
  write("samples/readme.txt", "no sample");
  const auto samples = calibration_inputs(*sum(1), {.folder = (folder_ / "samples").string()});
  ASSERT_TRUE(samples.ok()) << samples.error().to_string();
  ASSERT_EQ(samples->size(), 2U);
  EXPECT_EQ(first((*samples)[0]), 1);  // by name
  EXPECT_EQ(first((*samples)[1]), 2);
}

TEST_F(Calibration, FoldersHaveAFileForEachInput) {
  write("samples/one/x0.pb", tensor({3, 0}));
  write("samples/one/input_1.pb", tensor({4, 0}));
  const auto samples = calibration_inputs(*sum(2), {.folder = (folder_ / "samples").string()});
  ASSERT_TRUE(samples.ok()) << samples.error().to_string();
  ASSERT_EQ(samples->size(), 1U);
  EXPECT_EQ(first((*samples)[0], 0), 3);
  EXPECT_EQ(first((*samples)[0], 1), 4);
}

TEST_F(Calibration, ReferenceInputsBesideTheModelComeBeforeRandomOnes) {
  const auto model = sum(1);
  write("test_data_set_0/input_0.pb", tensor({5, 0}));
  write("test_data_set_1/input_0.pb", tensor({6, 0, 0, 0}, {2, 2}));  // of another shape: not used
  const auto samples = calibration_inputs(*model, {.folder = "", .random = 2});
  ASSERT_TRUE(samples.ok()) << samples.error().to_string();
  ASSERT_EQ(samples->size(), 3U);
  EXPECT_EQ(first((*samples)[0]), 5);
}

TEST_F(Calibration, WrongFoldersAndFilesAreNamed) {
  const auto error_of = [this](const fs::path& folder, int inputs) {
    const auto samples = calibration_inputs(*sum(inputs), {.folder = (folder_ / folder).string()});
    EXPECT_FALSE(samples.ok());
    EXPECT_EQ(samples.error().code(), Code::kInvalidInput);
    return samples.error().to_string();
  };
  EXPECT_THAT(error_of("absent", 1), HasSubstr("absent"));
  fs::create_directories(folder_ / "empty");
  EXPECT_THAT(error_of("empty", 1), HasSubstr("has no samples"));
  write("two/a.pb", tensor({1, 0}));
  EXPECT_THAT(error_of("two", 2), HasSubstr("give each sample a folder"));
  write("lacks/one/x0.pb", tensor({1, 0}));
  EXPECT_THAT(error_of("lacks", 2), HasSubstr("has no file for the input 'x1'"));
  write("shape/a.pb", tensor({1}, {1}));
  EXPECT_THAT(error_of("shape", 1), HasSubstr("is f32 1x2, the file holds f32 1"));
  write("broken/a.pb", "\xff\xff\xff");
  EXPECT_THAT(error_of("broken", 1), HasSubstr("a.pb"));
}

TEST(OnnxTensor, ReadsRawDataAndRefusesAllElse) {
  const std::string bytes = onnx_writer::float_tensor("t", {2}, {1.5F, -2});
  const auto read = parse_onnx_tensor(bytes);
  ASSERT_TRUE(read.ok()) << read.error().to_string();
  EXPECT_EQ(read->dtype, DType::kF32);
  EXPECT_EQ(read->shape, Shape{2});
  float second = 0;
  std::memcpy(&second, read->data.data() + 4, 4);
  EXPECT_EQ(second, -2);
  EXPECT_GE(read->data.data(), bytes.data());
  EXPECT_LE(read->data.data() + read->data.size(), bytes.data() + bytes.size());
  EXPECT_FALSE(parse_onnx_tensor("").ok());
  for (size_t cut = 1; cut < bytes.size(); ++cut)
    EXPECT_FALSE(parse_onnx_tensor(bytes.substr(0, cut)).ok()) << cut;
  EXPECT_FALSE(parse_onnx_tensor(onnx_writer::float_tensor("t", {3}, {1, 2})).ok());
}

}  // namespace
}  // namespace heddle
