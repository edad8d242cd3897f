// Plans over ranks that are processes: mpirun starts this test program again, and each process runs its part.
// Skipped if mpirun cannot start processes or Heddle was built without MPI.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "rank_support.h"

namespace heddle {
namespace {

using test::AcceleratedBackend;
using test::HashBackend;

constexpr const char* kWithoutMpi = "Heddle was built without MPI";

// Exit status and combined output.
std::pair<int, std::string> mpirun(int ranks, const std::string& program) {
  const std::string command = "mpirun --allow-run-as-root --oversubscribe --bind-to none -n " +
                              std::to_string(ranks) + " " + program + " 2>&1";
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {-1, "no pipe"};
  std::string said;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) said += static_cast<char>(c);
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, said};
}

void expect_plans(RankGroup& group) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    HashBackend plain;
    test::expect_requests(
        group, test::ranked_plan({.ops = 25, .devices = 4, .ranks = group.size(), .cores = true}, seed),
        plain.opener(), 3);
    AcceleratedBackend accelerated;
    const auto ranked = test::ranked_plan({.ops = 25,
                                           .devices = 5,
                                           .ranks = group.size(),
                                           .cpus = seed % 2 == 0 ? 2 : 0,
                                           .host_hub = seed % 3 == 0},
                                          seed);
    test::expect_requests(group, ranked, accelerated.opener(), 3);
    test::expect_streams(group, ranked, accelerated.opener(), 3);
  }
}

TEST(RealRanks, CpusAndAcceleratorsComputeWhatOneProcessDoes) {
  if (rank_environment().size > 1) {
    const auto transport = make_mpi_transport();
    if (!transport.ok() && transport.error().code() == Code::kUnsupported) GTEST_SKIP() << kWithoutMpi;
    ASSERT_TRUE(transport.ok()) << transport.error().to_string();
    RankGroup group(**transport);
    expect_plans(group);
    return;
  }
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const auto [started, words] = mpirun(2, "true");
  if (started != 0) GTEST_SKIP() << "mpirun starts nothing here: " << words;
  for (const int ranks : {2, 3}) {
    const auto [status, said] =
        mpirun(ranks, "'" + self + "' --gtest_filter=RealRanks.CpusAndAcceleratorsComputeWhatOneProcessDoes");
    if (said.find(kWithoutMpi) != std::string::npos) GTEST_SKIP() << kWithoutMpi;
    EXPECT_EQ(status, 0) << ranks << " ranks: " << said;
  }
}

}  // namespace
}  // namespace heddle
