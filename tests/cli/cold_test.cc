// heddle run --cold as a user meets it: a start that works, one with a budget, and files that are damaged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "heddle/base/json.h"
#include "run_program.h"

namespace heddle {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class ColdVerb : public testing::Test {
 protected:
  void SetUp() override {
    const std::string file = wheel_model("light_squeezenet.onnx");
    if (file.empty()) GTEST_SKIP() << "the wheel onnx is not in .venv";
    fs::copy_file(file, folder_.file("model.onnx"));
  }
  Ran run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"run", "--cold", "--repeat", "1"});
    return run_heddle(arguments, folder_.path());
  }
  Json json_of(std::vector<std::string> arguments) const {
    arguments.push_back("--json");
    const Ran ran = run(std::move(arguments));
    EXPECT_EQ(ran.status, 0) << ran.err;
    auto json = parse_json(ran.out);
    EXPECT_TRUE(json.ok()) << ran.out << ran.err;
    return json.ok() ? *json : Json();
  }
  const TemporaryFolder folder_;
};

TEST_F(ColdVerb, ReportsEverySegmentPredictedAndMeasuredAndTheBudgetHolds) {
  const Json first =
      json_of({"model.onnx", "--segments", "3", "--plan-output", "plan.json", "--versus", "openvino-f32"});
  EXPECT_EQ(first["outputs_equal"], true);
  ASSERT_EQ(first["segments"].size(), 3U);
  for (const Json& segment : first["segments"]) {
    for (const char* of : {"predicted", "measured"}) {
      EXPECT_GE(segment[of]["load_us"].get<double>(), 0);
      EXPECT_GT(segment[of]["compile_us"].get<double>(), 0);
      EXPECT_GE(segment[of]["wait_us"].get<double>(), 0);
      EXPECT_GT(segment[of]["run_us"].get<double>(), 0);
    }
  }
  EXPECT_GT(first["first_output_us"].get<double>(), first["requests"][0]["latency_us"].get<double>());
  EXPECT_GT(first["predicted_us"].get<double>(), 0);
  EXPECT_GT(first["versus_openvino"]["ratio"].get<double>(), 0);
  // Most of its 5 MB of parameters, in the plan's segments.
  const Json budget = json_of({"plan.json", "--budget-bytes", "4500000", "--requests", "2"});
  EXPECT_EQ(budget["outputs_equal"], true);
  EXPECT_LE(budget["peak_resident_bytes"].get<int64_t>(), 4'500'000);
  EXPECT_EQ(budget["requests"][0]["loaded"], 3);
  EXPECT_GT(budget["requests"][1]["loaded"], 0);
  const Ran small = run({"plan.json", "--budget-bytes", "1000"});
  EXPECT_EQ(small.status, 1);
  EXPECT_THAT(small.err, HasSubstr("more than the budget of"));
}

TEST_F(ColdVerb, AModelThatIsCutShortAfterItWasPlannedIsOneErrorAndStatusOne) {
  ASSERT_EQ(run({"model.onnx", "--plan-output", "plan.json"}).status, 0);
  fs::resize_file(folder_.file("model.onnx"), fs::file_size(folder_.file("model.onnx")) / 2);
  const Ran cut = run({"plan.json"});
  EXPECT_EQ(cut.status, 1);
  EXPECT_THAT(cut.err, HasSubstr("model.onnx"));
  EXPECT_EQ(cut.out, "");
  fs::remove(folder_.file("model.onnx"));
  const Ran gone = run({"plan.json"});
  EXPECT_EQ(gone.status, 1);
  EXPECT_THAT(gone.err, HasSubstr("model.onnx"));
}

}  // namespace
}  // namespace heddle
