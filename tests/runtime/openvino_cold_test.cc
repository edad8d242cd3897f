// Cold starts of real models: outputs, the cache of compiled segments, and files that are not what was
// planned.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "heddle/base/json.h"
#include "heddle/cluster/discover.h"
#include "heddle/graph/graph_json.h"
#include "heddle/graph/model.h"
#include "heddle/runtime/cold.h"
#include "heddle/runtime/cold_plan.h"
#include "heddle/runtime/segment_cache.h"
#include "wheel_file.h"

namespace heddle {
namespace {

namespace fs = std::filesystem;

class OpenVinoCold : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("heddle-cold-test-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    const std::string source = wheel_model("light_squeezenet.onnx");
    if (source.empty()) GTEST_SKIP() << "the wheel 'onnx' with its models is not installed";
    path_ = (folder_ / "model.onnx").string();
    fs::copy_file(source, path_);
    const auto model = Model::load(path_);
    ASSERT_TRUE(model.ok()) << model.error().to_string();
    problem_.graph = (*model)->graph();
    problem_.cluster = discover_local().value();
    auto costs = std::make_shared<CostTable>(problem_.graph->num_ops(), problem_.cluster->num_devices());
    for (size_t op = 0; op < problem_.graph->num_ops(); ++op) {
      for (size_t d = 0; d < problem_.cluster->num_devices(); ++d)
        costs->set(OpId(op), DeviceId(d), {.us = 10, .origin = Origin::kGiven, .rel_spread = 0});
    }
    problem_.costs = costs;
    problem_.model = ModelReference{path_, (*model)->file_hash(), {}, {}};
    const auto plan = cold_plan(problem_, {.segments = 3, .device = {}});
    ASSERT_TRUE(plan.ok()) << plan.error().to_string();
    plan_ = *plan;
    ASSERT_EQ(plan_.segments.size(), 3U);
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_;
  std::string path_;
  Problem problem_;
  Plan plan_;
};

TEST_F(OpenVinoCold, OutputsAreTheUnsplitModelsWithAndWithoutBudgetAndCache) {
  ColdRunOptions options;
  options.requests = 2;
  int64_t total = 0;
  for (size_t p = 0; p < problem_.graph->num_params(); ++p) total += problem_.graph->param(ParamId(p)).bytes;
  for (const int64_t budget : {int64_t{0}, total * 9 / 10}) {
    options.budget_bytes = budget;
    const auto run = run_cold(problem_, plan_, options);
    ASSERT_TRUE(run.ok()) << run.error().to_string();
    EXPECT_TRUE(run->verified && run->outputs_equal) << run->max_rel_error;
    ASSERT_EQ(run->requests.size(), 2U);
    int again = 0;
    for (const auto& s : run->requests[1]) again += s.loading.begin_us >= 0 ? 1 : 0;
    EXPECT_EQ(again > 0, budget > 0);
    if (budget > 0) {
      EXPECT_LE(run->peak_resident_bytes, budget);
    }
  }
  options.budget_bytes = 0;
  auto cache = SegmentCache::open((folder_ / "cache").string(), 0).value();
  options.cache = cache.get();
  for (const bool second : {false, true}) {
    const auto run = run_cold(problem_, plan_, options);
    ASSERT_TRUE(run.ok()) << run.error().to_string();
    EXPECT_TRUE(run->verified && run->outputs_equal);
    for (const auto& s : run->requests[0]) EXPECT_EQ(s.loading.cached, second);
  }
  // A damaged file is compiled again.
  for (const auto& file : fs::directory_iterator(folder_ / "cache")) {
    // The smallest one holds the model's hash.
    if (file.file_size() < 1000) continue;
    fs::resize_file(file.path(), 100);
    break;
  }
  const auto run = run_cold(problem_, plan_, options);
  ASSERT_TRUE(run.ok()) << run.error().to_string();
  EXPECT_TRUE(run->outputs_equal);
  int cached = 0;
  for (const auto& s : run->requests[0]) cached += s.loading.cached ? 1 : 0;
  EXPECT_EQ(cached, 2);
}

TEST_F(OpenVinoCold, MappedWeightsGiveTheSameModel) {
  const auto copied = Model::load(path_), mapped = Model::load(path_, {.map_weights = true});
  ASSERT_TRUE(copied.ok() && mapped.ok());
  EXPECT_EQ((*copied)->file_hash(), (*mapped)->file_hash());
  EXPECT_EQ(graph_to_json(*(*copied)->graph()), graph_to_json(*(*mapped)->graph()));
  const auto inputs = make_inputs(*problem_.graph, {});
  ASSERT_TRUE(inputs.ok());
  const auto expected = reference_outputs(**copied, *inputs), actual = reference_outputs(**mapped, *inputs);
  ASSERT_TRUE(expected.ok() && actual.ok());
  ASSERT_EQ(expected->size(), actual->size());
  for (size_t i = 0; i < expected->size(); ++i) {
    const auto difference = compare_tensors((*actual)[i].view(), (*expected)[i].view(), 1e-6, 1e-7);
    EXPECT_TRUE(difference.equal) << difference.max_rel;
  }
}

// PaddlePaddle's exporter keeps weights as attributes of Constant nodes, most others as initializers.
TEST(MappedModel, WithWeightsInConstantNodesIsTheSame) {
  const std::string path = wheel_model("ch_PP-OCRv4_rec_infer.onnx");
  if (path.empty()) GTEST_SKIP() << "the wheel 'rapidocr-onnxruntime' with its models is not installed";
  ImportOptions options;
  // At a width of 64 OpenVINO 2026.4 gives other outputs each time, even of one compiled model.
  options.shapes["x"] = {1, 3, 48, 320};
  const auto copied = Model::load(path, options);
  options.map_weights = true;
  const auto mapped = Model::load(path, options);
  ASSERT_TRUE(copied.ok() && mapped.ok());
  EXPECT_EQ(graph_to_json(*(*copied)->graph()), graph_to_json(*(*mapped)->graph()));
  const auto inputs = make_inputs(*(*copied)->graph(), {});
  ASSERT_TRUE(inputs.ok());
  const auto expected = reference_outputs(**copied, *inputs), actual = reference_outputs(**mapped, *inputs);
  ASSERT_TRUE(expected.ok() && actual.ok());
  for (size_t i = 0; i < expected->size(); ++i)
    EXPECT_TRUE(compare_tensors((*actual)[i].view(), (*expected)[i].view(), 1e-6, 1e-7).equal);
}

TEST_F(OpenVinoCold, AFileThatIsCutShortOrChangedIsAnErrorThatNamesIt) {
  const auto size = fs::file_size(path_);
  auto cache = SegmentCache::open((folder_ / "cache").string(), 0).value();
  for (SegmentCache* with : {static_cast<SegmentCache*>(nullptr), cache.get()}) {
    ColdRunOptions options;
    options.cache = with;
    for (const auto part : {size / 2, size - 1, uintmax_t{0}}) {
      fs::resize_file(path_, part);
      const auto run = run_cold(problem_, plan_, options);
      ASSERT_FALSE(run.ok());
      EXPECT_NE(run.error().to_string().find(path_), std::string::npos) << run.error().to_string();
      fs::copy_file(wheel_model("light_squeezenet.onnx"), path_, fs::copy_options::overwrite_existing);
    }
    fs::remove(path_);
    EXPECT_EQ(run_cold(problem_, plan_, options).error().code(), Code::kNotFound);
    fs::copy_file(wheel_model("light_shufflenet.onnx"), path_);
    const auto other = run_cold(problem_, plan_, options);
    ASSERT_FALSE(other.ok());
    EXPECT_NE(other.error().to_string().find("plan it again"), std::string::npos);
    fs::copy_file(wheel_model("light_squeezenet.onnx"), path_, fs::copy_options::overwrite_existing);
  }
}

}  // namespace
}  // namespace heddle
