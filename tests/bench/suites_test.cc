// A short run of each suite of `heddle bench` that has a part of a few seconds: it ends, and no row contradicts itself.
#include "suites.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "heddle/base/file.h"
#include "plan/workload_support.h"
#include "wheel_file.h"

namespace heddle::bench {
namespace {

struct Part {
  const char* suite;
  std::vector<std::string> only;
  std::string input;             // in the public data; empty: the suite needs none
  std::string model, reference;  // in a wheel; beside the input
  size_t rows = 1;               // at least
  double time_limit_s = .1;
};
const std::vector<Part>& parts() {
  static const std::vector<Part> kParts = {
      {"core", {"planning"}, "", "", "", 3},
      {"models", {"auto"}, "", "light_squeezenet.onnx", "", 3},
      {"cold", {"plain"}, "", "light_squeezenet.onnx", "", 3},
      {"diviml", {"table3"}, "", "", "", 3},
      {"hios", {"default"}, "", "", "", 10},
      {"hios", {"models"}, "", "", "", 10},
      {"hios", {"sim_2001"}, "hios/sim", "", "", 10},
      {"moirai", {"GoogLeNet"}, "moirai", "", "", 1},
      {"moirai", {"swin-1.8b"}, "moirai", "", "", 10},
      {"sortinghat", {"v100-1", "gpt2-large", "1x32"}, "", "", "", 10},
      {"dnn-partitioning",
       {"resnet50_training"},
       "dnn-partitioning/throughput-inputs",
       "",
       "../reference.csv",
       1},
      {"diviml", {"gpt3"}, "", "", "", 12, 2},
      {"ppipe", {"plans", "simulation", "attainment", "speed", "HC1-L/G1"}, "ppipe", "", "", 10},
      {"ppipe", {"goodput", "HC1-L/G1"}, "ppipe", "", "", 16},
      {"ppipe", {"ablation", "HC1-L/G1"}, "ppipe", "", "", 50},
      {"ppipe", {"small", "HC1-S/googlenet-v3-pytorch"}, "ppipe", "", "", 20},
      {"ppipe", {"HC1-L/G1", "plans"}, "ppipe", "", "", 6, 0},
      {"ppipe", {"fleets"}, "ppipe", "", "", 40},
      {"ppipe", {"realtime"}, "ppipe", "", "", 8},
      {"ppipe", {"day", "HC1-S/G1"}, "ppipe", "", "", 14},
      {"diviml", {"table4"}, "", "", "", 90, .01},
      {"serve", {}, "", "", "", 10},
  };
  return kParts;
}

class Suites : public testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(All, Suites, testing::Range<size_t>(0, parts().size()), [](const auto& param) {
  std::string name = parts()[param.param].suite;
  for (const auto& only : parts()[param.param].only) name += "_" + only;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
});

TEST_P(Suites, GivesRowsThatDoNotContradictTheirBounds) {
  const Part& part = parts()[GetParam()];
  BenchOptions options;
  options.only = part.only;
  options.time_limit_s = part.time_limit_s;
  options.instances = 1;
  options.repeats = 1;
  if (!part.input.empty()) {
    options.input = test::public_data(part.input);
    if (!file_exists(options.input)) GTEST_SKIP() << "no public data; set HEDDLE_SHARED";
    if (!part.reference.empty()) options.reference = options.input + part.reference;
  }
  if (!part.model.empty()) {
    const auto model = wheel_model(part.model);
    if (model.empty()) GTEST_SKIP() << "the wheel 'onnx' with its models is not installed";
    options.models = {model};
  }
  const auto suite = std::ranges::find(bench_suites(), std::string_view(part.suite), &BenchSuite::name);
  ASSERT_NE(suite, bench_suites().end());
  const auto run = run_suite(*suite, options, {});
  // A machine may lack an engine or a solver, or be too busy for a plan within the time limit.
  if (!run.status.ok() &&
      (run.status.error().code() == Code::kUnsupported || run.status.error().code() == Code::kCancelled))
    GTEST_SKIP() << run.status.error().to_string();
  ASSERT_TRUE(run.status.ok()) << run.status.error().to_string();
  EXPECT_GE(run.rows.size(), part.rows);
  for (const BenchRow& row : run.rows) {
    const std::string what = row.instance + ": " + row.metric;
    EXPECT_TRUE(std::isfinite(row.value)) << what;
    EXPECT_FALSE(row.fails) << what;
    if (!row.bound) continue;
    const bool upper = row.unit.ends_with("/s") || row.metric.find("load at") != std::string::npos;
    EXPECT_EQ(row.bound_is_upper, upper) << what;
  }
}

}  // namespace
}  // namespace heddle::bench
