#include "heddle/graph/zoo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace heddle {
namespace {

using ::testing::HasSubstr;

ZooSize size_of(const std::string& name, const ZooParams& params = {}) {
  const auto size = zoo_size(name, params);
  EXPECT_TRUE(size.ok()) << size.error().to_string();
  return size.ok() ? *size : ZooSize{};
}

std::shared_ptr<const Graph> graph_of(const std::string& name, const ZooParams& params = {}) {
  const auto graph = build_zoo_graph(name, params);
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  return graph.ok() ? *graph : nullptr;
}

std::string error_of(const std::string& name, const ZooParams& params) {
  const auto graph = build_zoo_graph(name, params);
  return graph.ok() ? "no error" : graph.error().to_string();
}

// Exact figures of the released models (torchvision, timm, Keras, the transformers library).
TEST(Zoo, ParameterCountsAreThePublishedOnes) {
  const std::map<std::string, int64_t> published = {
      {"resnet-18", 11'689'512},       {"resnet-34", 21'797'672},       {"resnet-50", 25'557'032},
      {"resnet-101", 44'549'160},      {"resnet-152", 60'192'808},      {"inception-v3", 23'834'568},
      {"nasnet-a-mobile", 5'289'978},  {"nasnet-a-large", 88'753'150},  {"gpt2", 124'439'808},
      {"gpt2-medium", 354'823'168},    {"gpt2-large", 774'030'080},     {"gpt2-xl", 1'557'611'200},
      {"openllama-3b", 3'426'473'600}, {"openllama-7b", 6'738'415'616}, {"bert-base", 109'482'240},
      {"bert-large", 335'141'888},     {"swin-t", 28'288'354},          {"swin-s", 49'606'258},
      {"swin-b", 87'768'224},          {"swin-l", 196'532'476}};
  for (const auto& [name, count] : published) EXPECT_EQ(size_of(name).parameters, count) << name;
  EXPECT_EQ(size_of("inception-v3", {{"aux", "1"}}).parameters, 27'161'264);
}

// Rounded figures from papers.
TEST(Zoo, ParameterCountsComeCloseToThoseThatPapersRound) {
  const std::map<std::string, double> published = {
      {"gpt3-125m", 125e6}, {"gpt3-350m", 350e6}, {"gpt3-760m", 760e6}, {"gpt3-1.3b", 1.3e9},
      {"gpt3-2.7b", 2.7e9}, {"gpt3-6.7b", 6.7e9}, {"gpt3-13b", 13e9},   {"gpt3-175b", 175e9},
      {"swin-1.8b", 1.8e9}, {"swin-6.6b", 6.6e9}, {"swin-13b", 13e9},   {"evoformer", 87e6}};
  for (const auto& [name, count] : published)
    EXPECT_NEAR(static_cast<double>(size_of(name).parameters) / count, 1, 0.02) << name;
}

TEST(Zoo, MultiplyAccumulatesAreThePublishedOnes) {
  const std::map<std::string, double> published = {{"resnet-18", 1.81e9},
                                                   {"resnet-50", 4.09e9},
                                                   {"resnet-152", 11.51e9},
                                                   {"inception-v3", 5.71e9},
                                                   {"nasnet-a-mobile", 0.564e9},
                                                   {"nasnet-a-large", 23.8e9},
                                                   {"swin-t", 4.5e9},
                                                   {"swin-b", 15.4e9}};
  for (const auto& [name, macs] : published) EXPECT_NEAR(size_of(name).macs / macs, 1, 0.005) << name;
}

// Per token, each matrix weight is used once, and attention takes 2 * seq * hidden in each layer.
TEST(Zoo, DecodersMultiplyEachWeightOncePerToken) {
  const double dense = 48 * 12.0 * 1600 * 1600 + 50257.0 * 1600, attention = 48 * 2.0 * 1024 * 1600;
  EXPECT_DOUBLE_EQ(size_of("gpt2-xl").macs, 1024 * (dense + attention));
}

TEST(Zoo, GnmtCountsSharedWeightsOnceForAnyLength) {
  const auto lstm = [](int64_t in) { return 4 * (in * 1024 + 1024 * 1024 + 1024); };
  const int64_t encoder = 2 * lstm(1024) + lstm(2048) + 6 * lstm(1024), decoder = lstm(1024) + 7 * lstm(2048);
  const int64_t rest = 3 * 32000 * 1024 + 32000 + 2 * 1024 * 1024 + 1024;
  EXPECT_EQ(size_of("gnmt").parameters, encoder + decoder + rest);
  EXPECT_EQ(size_of("gnmt", {{"seq", "3"}, {"target", "5"}}).parameters, encoder + decoder + rest);
  EXPECT_EQ(graph_of("gnmt")->total_param_bytes(), 4 * (encoder + decoder + rest));
}

TEST(Zoo, EveryModelBuildsAtItsDefaultSize) {
  std::set<std::string> names;
  for (const ZooEntry& entry : zoo_models()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_FALSE(entry.description.empty());
    EXPECT_FALSE(entry.source.empty());
    const auto graph = graph_of(entry.name);
    ASSERT_NE(graph, nullptr);
    EXPECT_EQ(static_cast<int64_t>(graph->num_ops()), size_of(entry.name).ops);
    EXPECT_GE(graph->total_flops(), 2 * size_of(entry.name).macs);
    // Running statistics, masks and expanded tables come on top of the published counts.
    EXPECT_GE(graph->total_param_bytes(), 4 * size_of(entry.name).parameters) << entry.name;
    for (const TensorId t : graph->outputs()) EXPECT_TRUE(graph->tensor(t).producer.valid());
  }
}

TEST(Zoo, HalfPrecisionHalvesTheWeights) {
  for (const auto* name : {"bert-base", "resnet-50", "openllama-7b"})
    EXPECT_EQ(2 * graph_of(name, {{"dtype", "f16"}})->total_param_bytes(),
              graph_of(name)->total_param_bytes())
        << name;
}

TEST(Zoo, BatchMultipliesTheArithmetic) {
  for (const auto* name : {"resnet-18", "gpt2", "swin-t", "gnmt", "bert-base"})
    EXPECT_DOUBLE_EQ(size_of(name, {{"batch", "4"}}).macs, 4 * size_of(name).macs) << name;
}

TEST(Zoo, ADecodingStepReadsTheCache) {
  const auto graph = graph_of("openllama-3b", {{"seq", "1"}, {"past", "1023"}});
  EXPECT_EQ(graph->inputs().size(), 3u + 2 * 26);
  EXPECT_EQ(graph->tensor(graph->find_tensor("layer0.past_k")).shape, (Shape{1, 32, 1023, 100}));
  EXPECT_EQ(graph->tensor(graph->find_tensor("layer0.attend.scores")).shape, (Shape{1, 32, 1, 1024}));
}

TEST(Zoo, ErrorsNameWhatExists) {
  EXPECT_THAT(error_of("resnet-5", {}),
              HasSubstr("the zoo has no model 'resnet-5' (did you mean 'resnet-50'?); it has 'resnet-18'"));
  EXPECT_THAT(error_of("resnet-50", {{"imag", "3"}}),
              HasSubstr("zoo model 'resnet-50': there is no parameter 'imag' (did you mean 'image'?)"));
  EXPECT_THAT(error_of("resnet-50", {{"batch", "0"}}),
              HasSubstr("batch is '0', expected a whole number from 1 to 65536"));
  EXPECT_THAT(error_of("resnet-50", {{"batch", "2x"}}), HasSubstr("batch is '2x'"));
  EXPECT_THAT(error_of("resnet-50", {{"batch", "99999999999999999999"}}),
              HasSubstr("expected a whole number"));
  EXPECT_THAT(error_of("gpt2", {{"dtype", "int8"}}), HasSubstr("dtype is 'int8', expected f32 or f16"));
  EXPECT_THAT(error_of("gpt3-175b", {{"seq", "4096"}}),
              HasSubstr("seq is '4096', expected a whole number from 1 to 2048"));
}

TEST(Zoo, SizesBeyondAllMachinesAreErrors) {
  EXPECT_THAT(error_of("resnet-50", {{"batch", "65536"}, {"image", "16384"}}), HasSubstr("too large"));
  EXPECT_THAT(error_of("gnmt", {{"layers", "64"}, {"seq", "400"}, {"target", "400"}}),
              HasSubstr("more than 500000 nodes"));
  EXPECT_THAT(error_of("evoformer", {{"residues", "16384"}, {"sequences", "65536"}}), HasSubstr("too large"));
}

// 75 pixels are the minimum that leaves the last reduction one pixel.
TEST(Zoo, PicturesTooSmallForAKernelAreRefused) {
  EXPECT_EQ(graph_of("inception-v3", {{"image", "75"}})->num_ops(), 313u);
  EXPECT_THAT(error_of("inception-v3", {{"image", "75"}, {"aux", "1"}}),
              HasSubstr("'aux.pool': the picture is too small here (1x768x3x3); give a larger one"));
}

TEST(Zoo, OddSizesBuildOrAreRefused) {
  for (const auto& entry : zoo_models()) {
    for (const ZooParam& param : entry.params) {
      if (param.name == "vocabulary" || param.name == "classes") continue;
      for (const int64_t value : {param.min, param.min + 1, param.default_value + 1}) {
        if (value > param.max) continue;
        ZooParams params = {{param.name, std::to_string(value)}};
        const auto is_layers = [](const ZooParam& p) { return p.name == "layers"; };
        if (std::any_of(entry.params.begin(), entry.params.end(), is_layers)) params.emplace("layers", "2");
        const auto graph = build_zoo_graph(entry.name, params);
        if (graph.ok()) continue;
        EXPECT_EQ(graph.error().code(), Code::kInvalidInput);
        EXPECT_THAT(graph.error().to_string(), HasSubstr("too small here"))
            << entry.name << " " << param.name << "=" << value;
      }
    }
  }
}

TEST(Zoo, ParametersAreReadFromTexts) {
  const auto params = parse_zoo_params({"batch=8", "dtype=f16"});
  ASSERT_TRUE(params.ok());
  EXPECT_EQ(*params, (ZooParams{{"batch", "8"}, {"dtype", "f16"}}));
  EXPECT_THAT(parse_zoo_params({"batch"}).error().to_string(), HasSubstr("not of the form key=value"));
  EXPECT_THAT(parse_zoo_params({"=1"}).error().to_string(), HasSubstr("not of the form key=value"));
  EXPECT_THAT(parse_zoo_params({"a=1", "a=2"}).error().to_string(), HasSubstr("given twice"));
}

}  // namespace
}  // namespace heddle
