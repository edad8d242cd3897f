// Checks the zoo's ONNX files with onnx.checker, the importer and two runtimes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <map>
#include <openvino/core/model.hpp>
#include <openvino/op/constant.hpp>

#include "heddle/base/hash.h"
#include "heddle/graph/model.h"
#include "heddle/graph/zoo.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

// Allowance for shapes, axes and factors that the importer adds and the zoo does not count as parameters.
constexpr int64_t kSmallConstants = 16 << 10;

struct Case {
  std::string name;
  ZooParams params;
};

// Every architecture with few blocks; other members of a family differ in size only.
const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"resnet-18", {}},
      {"resnet-50", {{"batch", "2"}, {"image", "64"}}},
      {"inception-v3", {{"aux", "1"}}},
      {"nasnet-a-mobile", {}},
      {"nasnet-a-large", {{"blocks", "2"}}},
      {"gpt2-xl", {{"layers", "2"}, {"seq", "8"}}},
      {"gpt3-13b", {{"layers", "2"}, {"seq", "1"}, {"past", "19"}, {"dtype", "f16"}}},
      {"openllama-7b", {{"layers", "2"}, {"seq", "8"}, {"past", "3"}}},
      {"bert-base", {{"layers", "2"}}},
      {"swin-t", {{"image", "250"}}},
      {"swin-13b", {{"middle", "2"}}},
      {"evoformer", {{"layers", "1"}, {"sequences", "6"}, {"residues", "9"}}},
      {"gnmt", {{"layers", "3"}, {"seq", "4"}, {"target", "3"}, {"batch", "2"}}},
  };
  return all;
}

class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "heddle-zoo-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path_); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

struct Outcome {
  int status = -1;
  std::string output;
};

Outcome run_script(const std::string& arguments) {
  std::string command =
      "'" HEDDLE_SOURCE_DIR "/.venv/bin/python' '" HEDDLE_SOURCE_DIR "/tests/graph/check_onnx.py' ";
  command += arguments;
  command += " 2>&1";
  Outcome outcome;
  FILE* pipe = popen(command.c_str(), "r");
  std::array<char, 4096> buffer;
  while (const size_t n = fread(buffer.data(), 1, buffer.size(), pipe))
    outcome.output.append(buffer.data(), n);
  outcome.status = pclose(pipe);
  return outcome;
}

bool has_python() { return fs::exists(HEDDLE_SOURCE_DIR "/.venv/bin/python"); }

Status write_case(const Case& c, const std::string& path, bool weights = false) {
  const auto written = write_zoo_onnx(c.name, c.params, path, {.random_weights = weights});
  return written.ok() ? Status() : Status(written.error());
}

void expect_same_ops(const Graph& ours, const Graph& theirs) {
  EXPECT_EQ(theirs.num_ops(), ours.num_ops());
  EXPECT_EQ(theirs.num_edges(), ours.num_edges());
  EXPECT_EQ(theirs.inputs().size(), ours.inputs().size());
  for (const Op& op : ours.ops()) {
    const OpId id = theirs.find_op(op.name);
    ASSERT_TRUE(id.valid()) << op.name;
    const Op& other = theirs.op(id);
    EXPECT_EQ(other.type, op.type) << op.name;
    if (op.type != "Einsum") {
      EXPECT_NEAR(other.flops, op.flops, 1e-9 * op.flops) << op.name;
    }
    // OpenVINO's MaxPool has a second output (indices) without readers.
    ASSERT_EQ(other.outputs.size(), op.outputs.size() + (op.type == "MaxPool" ? 1 : 0)) << op.name;
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      EXPECT_EQ(theirs.tensor(other.outputs[i]).shape, ours.tensor(op.outputs[i]).shape) << op.name;
      EXPECT_EQ(theirs.tensor(other.outputs[i]).dtype, ours.tensor(op.outputs[i]).dtype) << op.name;
    }
  }
}

// Each of our weights exists there with the same name and size, except renamed filters in groups.
void expect_same_params(const Graph& ours, const Graph& theirs) {
  std::map<std::string, int64_t> left;
  for (const Param& p : theirs.params()) left[p.name] = p.bytes;
  int64_t renamed = 0;
  for (const Param& p : ours.params()) {
    const auto it = left.find(p.name);
    if (it == left.end()) {
      EXPECT_THAT(p.name, HasSubstr("depthwise"));
      renamed += p.bytes;
      continue;
    }
    EXPECT_EQ(it->second, p.bytes) << p.name;
    left.erase(it);
  }
  int64_t rest = 0;
  for (const auto& [name, bytes] : left) rest += bytes;
  EXPECT_GE(rest, renamed);
  EXPECT_LE(rest, renamed + kSmallConstants);
}

TEST(ZooOnnx, FilesWithoutWeightsPassTheChecker) {
  if (!has_python()) GTEST_SKIP() << "no local Python environment";
  const Folder folder;
  std::string files;
  for (const Case& c : cases()) {
    const auto status = write_case(c, folder.file(c.name + ".onnx"));
    ASSERT_TRUE(status.ok()) << status.error().to_string();
    files += ' ';
    files += folder.file(c.name + ".onnx");
  }
  const Outcome outcome = run_script(files);
  EXPECT_EQ(outcome.status, 0) << outcome.output;
}

TEST(ZooOnnx, ImportGivesTheSameGraph) {
  const Folder folder;
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const std::string path = folder.file(c.name + ".onnx");
    ASSERT_TRUE(write_case(c, path).ok());
    const auto model = Model::load(path);
    ASSERT_TRUE(model.ok()) << model.error().to_string();
    const auto graph = build_zoo_graph(c.name, c.params);
    expect_same_ops(**graph, *(*model)->graph());
    expect_same_params(**graph, *(*model)->graph());
  }
}

TEST(ZooOnnx, AModelOfSevenBillionParametersIsASmallFile) {
  const Folder folder;
  const std::string path = folder.file("llama.onnx");
  ASSERT_TRUE(write_zoo_onnx("openllama-7b", {}, path).ok());
  EXPECT_LT(fs::file_size(path), 1u << 20);
  const auto model = Model::load(path);
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  EXPECT_GE((*model)->graph()->total_param_bytes(), 4 * int64_t{6'738'415'616});
}

TEST(ZooOnnx, RandomWeightsGiveEqualAndMeaningfulOutputsInTwoRuntimes) {
  if (!has_python()) GTEST_SKIP() << "no local Python environment";
  const std::vector<Case> small = {
      {"resnet-18", {{"image", "64"}}},
      {"nasnet-a-mobile", {{"image", "64"}, {"blocks", "1"}}},
      {"swin-t", {{"image", "120"}, {"middle", "1"}}},
      {"evoformer", {{"layers", "1"}, {"sequences", "6"}, {"residues", "9"}}},
      {"gnmt", {{"layers", "3"}, {"seq", "4"}, {"target", "3"}, {"hidden", "64"}, {"vocabulary", "100"}}}};
  const Folder folder;
  std::string files;
  for (const Case& c : small) {
    ASSERT_TRUE(write_case(c, folder.file(c.name + ".onnx"), true).ok());
    files += ' ';
    files += folder.file(c.name + ".onnx");
  }
  const Outcome outcome = run_script("--run" + files);
  EXPECT_EQ(outcome.status, 0) << outcome.output;
}

TEST(ZooOnnx, TheSeedDecidesTheWeights) {
  const Folder folder;
  const ZooParams params = {
      {"layers", "2"}, {"seq", "2"}, {"target", "2"}, {"hidden", "8"}, {"vocabulary", "10"}};
  const auto file_of = [&](uint64_t seed) {
    const std::string path = folder.file("g.onnx");
    EXPECT_TRUE(write_zoo_onnx("gnmt", params, path, {.random_weights = true, .seed = seed}).ok());
    return Model::load(path).value()->file_hash();
  };
  const uint64_t first = file_of(1);
  EXPECT_EQ(file_of(1), first);
  EXPECT_NE(file_of(2), first);
}

// As those of GPT-2 large, which has more than 2 GiB.
TEST(ZooOnnx, WeightsThatDoNotFitIntoTheFileAreBesideIt) {
  const Folder folder;
  const ZooParams params = {{"image", "64"}};
  const std::string one = folder.file("one.onnx"), two = folder.file("two.onnx");
  EXPECT_EQ(write_zoo_onnx("resnet-18", params, one, {.random_weights = true}).value(), "");
  const auto written =
      write_zoo_onnx("resnet-18", params, two, {.random_weights = true, .most_file_bytes = 1 << 20});
  ASSERT_TRUE(written.ok()) << written.error().to_string();
  EXPECT_EQ(*written, two + ".data");
  EXPECT_LT(fs::file_size(two), 1U << 20);
  const auto whole = Model::load(one), apart = Model::load(two);
  ASSERT_TRUE(whole.ok() && apart.ok()) << (apart.ok() ? "" : apart.error().to_string());
  EXPECT_GE(fs::file_size(*written), static_cast<uintmax_t>((*whole)->graph()->total_param_bytes()));
  const auto weights = [](const Model& model) {
    std::map<std::string, uint64_t> hashes;  // of those that have a name in the file
    for (const auto& op : model.whole()->get_ops())
      if (const auto c = ov::as_type_ptr<ov::op::v0::Constant>(op);
          c && !op->get_friendly_name().starts_with("Constant_"))
        hashes[op->get_friendly_name()] =
            Hasher().text({static_cast<const char*>(c->get_data_ptr()), c->get_byte_size()}).value();
    return hashes;
  };
  EXPECT_GT(weights(**whole).size(), 40U);
  EXPECT_EQ(weights(**whole), weights(**apart));
  const auto refused = write_zoo_onnx("resnet-18", params, folder.file("three.onnx"),
                                      {.random_weights = true, .most_file_bytes = 100});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().to_string(), HasSubstr("more than an ONNX file can have"));
  EXPECT_FALSE(fs::exists(folder.file("three.onnx.data")));
}

}  // namespace
}  // namespace heddle
