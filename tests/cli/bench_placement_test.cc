// heddle bench dnn-partitioning on a small folder, as a user has it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "heddle/base/json.h"
#include "run_program.h"

namespace heddle {
namespace {

using testing::HasSubstr;

// Two nodes of 4 on an accelerator, a cheap edge between them.
constexpr char kWorkload[] = R"({"maxFPGAs": 2, "maxCPUs": 1, "maxSizePerFPGA": 10, "nodes": [
  {"id": 0, "supportedOnFpga": 1, "cpuLatency": 40, "fpgaLatency": 4, "isBackwardNode": 0, "size": 6},
  {"id": 1, "supportedOnFpga": 1, "cpuLatency": 40, "fpgaLatency": 4, "isBackwardNode": 0, "size": 6}],
  "edges": [{"sourceId": 0, "destId": 1, "cost": 0.5}]})";

constexpr char kReference[] =
    "setting,graph,workload,mode,peer,objective,feasible\n"
    "throughput,Tiny,pair,contiguous,\"peer, first\",4.6,yes\n"
    "throughput,Tiny,pair,contiguous,second,4.5,yes\n"
    "throughput,Tiny,pair,as given,cheat,1,no (memory)\n"
    "throughput,Tiny,pair,as given,expert,4.4,yes\n"
    "throughput,Tiny,pair,contiguous,none,,yes\n";

class BenchPlacement : public testing::Test {
 protected:
  BenchPlacement() {
    std::filesystem::create_directories(folder_.file("throughput-inputs/Tiny"));
    folder_.write("throughput-inputs/Tiny/pair.json", kWorkload);
    folder_.write("throughput-inputs/Tiny/split.json", R"({"fpgas": [], "cpus": []})");
    folder_.write("reference.csv", kReference);
  }
  Ran bench(std::vector<std::string> more) {
    std::vector<std::string> arguments = {"bench", "dnn-partitioning", "--time-limit", "2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_heddle(arguments, folder_.path());
  }
  TemporaryFolder folder_;
};

TEST_F(BenchPlacement, RowsHaveValueBoundAndTheBestReference) {
  const auto ran = bench({"--input", ".", "--reference", "reference.csv", "--json"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto rows = parse_json(ran.out);
  ASSERT_TRUE(rows.ok()) << ran.out;
  ASSERT_EQ(rows->size(), 3U);
  const auto& contiguous = (*rows)[0];
  EXPECT_EQ(contiguous["instance"], "throughput/Tiny/pair");
  EXPECT_EQ(contiguous["metric"], "contiguous");
  EXPECT_EQ(contiguous["value"], 4.5);  // one each: 4 + 0.5 for the transfer
  EXPECT_EQ(contiguous["bound"], 4.5);
  EXPECT_EQ(contiguous["baseline"], "second");
  EXPECT_EQ(contiguous["baseline_value"], 4.5);
  EXPECT_TRUE(contiguous["primal_integral_s"].is_number());
  EXPECT_TRUE(contiguous["after"].is_array());
  EXPECT_EQ((*rows)[1]["metric"], "non-contiguous");
  EXPECT_EQ((*rows)[1]["baseline"], "expert");
  // The second reference, 4.4, is impossible.
  EXPECT_EQ((*rows)[2]["value"], 1);
  EXPECT_EQ((*rows)[2]["reference"], 2);
}

TEST_F(BenchPlacement, AContiguousReferenceCountsWithoutContiguityToo) {
  folder_.write("contiguous.csv",
                "setting,graph,workload,mode,peer,objective,feasible\n"
                "throughput,Tiny,pair,contiguous,split,4.5,yes\n"
                "throughput,Tiny,pair,as given,worse,4.7,yes\n");
  const auto ran = bench({"--input", ".", "--reference", "contiguous.csv", "--json"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto rows = parse_json(ran.out);
  ASSERT_TRUE(rows.ok()) << ran.out;
  for (size_t row : {0, 1}) EXPECT_EQ((*rows)[row]["baseline"], "split");
  EXPECT_EQ((*rows)[2]["value"], 2);
}

TEST_F(BenchPlacement, OnlyChoosesRows) {
  const auto ran = bench({"--input", "throughput-inputs", "--only", "pair/contiguous"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("throughput/Tiny/pair"));
  EXPECT_THAT(ran.out, testing::Not(HasSubstr("non-contiguous")));
  EXPECT_THAT(ran.err, HasSubstr("throughput/Tiny/pair contiguous: 4.500000"));
  const auto none = bench({"--input", ".", "--only", "nothing"});
  EXPECT_EQ(none.status, 2);
  EXPECT_THAT(none.err, HasSubstr("no placement workload"));
  const auto misspelt = bench({"--input", ".", "--only", "pair,piar"});
  EXPECT_EQ(misspelt.status, 2);
  EXPECT_THAT(misspelt.err, HasSubstr("--only piar: no instance has that in its name"));
}

TEST_F(BenchPlacement, MalformedFilesAreNamed) {
  folder_.write("broken.csv", "setting,graph\n");
  auto ran = bench({"--input", ".", "--reference", "broken.csv"});
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.err, HasSubstr("broken.csv:1: there is no column 'workload'"));
  folder_.write("broken.csv", std::string(kReference) + "throughput,Tiny,pair,contiguous,third,4.5x,yes\n");
  ran = bench({"--input", ".", "--reference", "broken.csv"});
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.err, HasSubstr("broken.csv:7: the column 'objective' has '4.5x'; expected a number"));
  folder_.write("throughput-inputs/Tiny/pair.json", std::string(kWorkload).substr(0, 100));
  EXPECT_EQ(bench({"--input", "."}).status, 2);
  EXPECT_EQ(bench({"--input", "nowhere"}).status, 2);
}

}  // namespace
}  // namespace heddle
