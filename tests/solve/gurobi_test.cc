// Scripts imitate Gurobi's command line: possible answers, and what the adapter makes of them.
#include "../../src/solve/gurobi.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "heddle/solve/self_test.h"

namespace heddle {
namespace {

namespace fs = std::filesystem;

// minimise 2x + 3z, x + z >= 4.5, x in [0, 10], z in 0..10: 9 at x = 4.5, z = 0.
Milp small_model() {
  Milp model;
  const Var x = model.add_continuous(0, 10, "left over"), z = model.add_integer(0, 10, "pieces");
  model.add_cost(x, 2);
  model.add_cost(z, 3);
  model.at_least({{x, 1}, {z, 1}}, 4.5, "enough");
  return model;
}

class Gurobi : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "heddle-gurobi-test-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    // TearDown() looks here for files that runs leave behind.
    fs::create_directory(folder_ / "tmp");
    setenv("TMPDIR", (folder_ / "tmp").c_str(), 1);
  }
  void TearDown() override {
    EXPECT_TRUE(fs::is_empty(folder_ / "tmp"));
    for (const char* name : {"HEDDLE_GUROBI", "HEDDLE_MILP_SOLVER", "TMPDIR"}) unsetenv(name);
    fs::remove_all(folder_);
  }

  // Writes a gurobi_cl that logs its arguments and its input to `seen`, then executes `body`; $SOL is the
  // file for its answer.
  std::string script(const std::string& body) {
    const fs::path path = folder_ / "gurobi_cl";
    std::ofstream(path) << "#!/bin/sh\nSEEN=" << (folder_ / "seen").string() << R"(
for a in "$@"; do
  echo "$a" >> $SEEN
  case "$a" in
    ResultFile=*) SOL="${a#ResultFile=}";;
    InputFile=*) cat "${a#InputFile=}" >> $SEEN;;
    *.lp) cat "$a" >> $SEEN;;
  esac
done
echo 'Gurobi Optimizer version 11.0.3 build v11.0.3rc0 (linux64)'
)" << body << "\n";
    fs::permissions(path, fs::perms::owner_all);
    setenv("HEDDLE_GUROBI", path.c_str(), 1);
    setenv("HEDDLE_MILP_SOLVER", "gurobi", 1);
    return path.string();
  }
  std::string seen() const {
    std::ostringstream text;
    text << std::ifstream(folder_ / "seen").rdbuf();
    return text.str();
  }
  static std::string error_of(const Result<Solution>& result) {
    return result.ok() ? "no error" : result.error().to_string();
  }

  fs::path folder_;
};

const char* const kRight = R"(cat <<'END'
    Nodes    |    Current Node    |     Objective Bounds      |     Work
 Expl Unexpl |  Obj  Depth IntInf | Incumbent    BestBd   Gap | It/Node Time

H    0     0                      15.0000000    4.50000  70.0%     -    0s
*    0     0               0       9.0000000    9.00000  0.00%     -    0s

Explored 1 nodes (2 simplex iterations) in 0.01 seconds (0.00 work units)
Optimal solution found (tolerance 1.00e-06)
Best objective 9.000000000000e+00, best bound 9.000000000000e+00, gap 0.0000%
END
printf '# Objective value = 9\nx0 4.5\nx1 0\n' > $SOL)";

TEST_F(Gurobi, AnswersAreReadAndItIsToldWhatToDo) {
  script(kRight);
  Milp model = small_model();
  model.set_start({0}, 0);
  model.set_start({1}, 5);
  SolveOptions options;
  options.threads = 3;
  options.seed = 7;
  options.deadline = Deadline::after_seconds(20);
  std::vector<std::pair<double, double>> progress;
  options.on_progress = [&](const SolveProgress& p) { progress.emplace_back(p.incumbent, p.bound); };
  const auto solution = solve(model, options);
  ASSERT_TRUE(solution.ok()) << error_of(solution);
  EXPECT_EQ(solution->status, SolveStatus::kOptimal);
  EXPECT_EQ(solution->values, (std::vector<double>{4.5, 0}));
  EXPECT_DOUBLE_EQ(solution->objective, 9);
  EXPECT_LE(solution->bound, 9);
  EXPECT_NEAR(solution->bound, 9, 1e-7);
  EXPECT_EQ(solution->solver, "Gurobi 11.0.3");
  EXPECT_EQ(solution->nodes, 1);
  const std::vector<std::pair<double, double>> expected{{15, 4.5}, {9, 9}};
  EXPECT_EQ(progress, expected);
  for (const char* part :
       {"Threads=3", "Seed=7", "TimeLimit=19.", "x0 0\nx1 5\n", "Minimize", "Generals\n x1"})
    EXPECT_NE(seen().find(part), std::string::npos) << part;
}

TEST_F(Gurobi, ARelaxationHasNoIntegers) {
  script("echo 'Optimal objective  9.000000000e+00'\nprintf 'x0 4.5\\nx1 0\\n' > $SOL");
  const auto solution = solve_relaxation(small_model());
  ASSERT_TRUE(solution.ok()) << error_of(solution);
  EXPECT_EQ(solution->status, SolveStatus::kOptimal);
  EXPECT_EQ(seen().find("Generals"), std::string::npos);
}

TEST_F(Gurobi, InfeasibleIsBelievedButNotAgainstAStart) {
  script("echo 'Model is infeasible'");
  auto solution = solve(small_model());
  ASSERT_TRUE(solution.ok()) << error_of(solution);
  EXPECT_EQ(solution->status, SolveStatus::kInfeasible);
  Milp model = small_model();
  model.set_start({0}, 5);
  model.set_start({1}, 0);
  solution = solve(model);
  EXPECT_NE(error_of(solution).find("calls the model infeasible, which has a solution"), std::string::npos);
}

TEST_F(Gurobi, WrongSolutionsAreRefusedWithTheRow) {
  script("echo 'Optimal solution found'\nprintf 'x0 1\\nx1 2\\n' > $SOL");
  EXPECT_NE(error_of(solve(small_model())).find("row 'enough' is 3, not within [4.5, inf]"),
            std::string::npos)
      << error_of(solve(small_model()));
  script("echo 'Optimal solution found'\nprintf 'x0 11\\nx1 0\\n' > $SOL");
  EXPECT_NE(error_of(solve(small_model())).find("does not fit"), std::string::npos);
  // An "optimum" that its own bound does not prove is only a solution.
  script(
      "echo 'Best objective 1.5e+01, best bound 4.5, gap 70%'\necho 'Optimal solution found'\n"
      "printf 'x0 0\\nx1 5\\n' > $SOL");
  const auto solution = solve(small_model());
  ASSERT_TRUE(solution.ok()) << error_of(solution);
  EXPECT_EQ(solution->status, SolveStatus::kFeasible);
  EXPECT_NEAR(solution->bound, 4.5, 1e-6);
}

TEST_F(Gurobi, CrashesAndMissingLicencesSayWhatItSaidLast) {
  script("echo 'ERROR 10009: No Gurobi license found'\nexit 1");
  EXPECT_NE(
      error_of(solve(small_model())).find("status 1; it said last: 'ERROR 10009: No Gurobi license found'"),
      std::string::npos)
      << error_of(solve(small_model()));
  script("kill -SEGV $$");
  EXPECT_NE(error_of(solve(small_model())).find("signal 11"), std::string::npos);
}

TEST_F(Gurobi, GarbageIsNoSolution) {
  const std::vector<std::string> bad = {
      "x0 4.5\\nx7 0\\n",   "x0 4.5\\nx0 4.5\\nx1 0\\n", "x0 4.5\\n",
      "x0 4.5\\nx1\\n",     "x0 4.5\\nx1 nan\\n",        "x0 4.5\\nx1 0 0\\n",
      "\\001\\002\\377\\n", "x0 4.5\\nx1 1e999\\n",      "x 4.5\\n"};
  for (const std::string& answer : bad) {
    script("echo 'Optimal solution found'\nprintf '" + answer + "' > $SOL");
    const auto solution = solve(small_model());
    EXPECT_NE(error_of(solution).find("its solution file"), std::string::npos)
        << answer << error_of(solution);
  }
  script("head -c 20000 /dev/urandom; echo; echo 'Best objective zwölf, best bound , gap %'\n: > $SOL");
  const auto solution = solve(small_model());
  ASSERT_TRUE(solution.ok()) << error_of(solution);
  EXPECT_EQ(solution->status, SolveStatus::kUnknown);
}

TEST_F(Gurobi, OneThatHangsIsInterruptedAndItsStartIsKept) {
  script("trap '' INT TERM\nsleep 60 & wait; sleep 60");
  Milp model = small_model();
  model.set_start({0}, 5);
  model.set_start({1}, 0);
  SolveOptions options;
  options.deadline = Deadline::after_seconds(0.3);
  auto solution = solve(model, options);
  ASSERT_TRUE(solution.ok()) << error_of(solution);
  EXPECT_EQ(solution->status, SolveStatus::kFeasible);
  EXPECT_DOUBLE_EQ(solution->objective, 10);
  // The same with cancellation. A program that handles the interrupt may still answer.
  script("trap 'printf \"x0 4.5\\nx1 0\\n\" > $SOL; exit 0' INT\nsleep 60 & wait; sleep 60");
  const CancelToken token;
  options.deadline = Deadline::never(token);
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    token.cancel();
  });
  solution = solve(model, options);
  canceller.join();
  ASSERT_TRUE(solution.ok()) << error_of(solution);
  EXPECT_DOUBLE_EQ(solution->objective, 9);
}

TEST_F(Gurobi, TheVariableChoosesAndNamesWhatIsWrong) {
  setenv("HEDDLE_MILP_SOLVER", "highs", 1);
  auto solution = solve(small_model());
  ASSERT_TRUE(solution.ok()) << error_of(solution);
  EXPECT_EQ(solution->solver.substr(0, 5), "HiGHS");
  setenv("HEDDLE_MILP_SOLVER", "cplex", 1);
  EXPECT_NE(error_of(solve(small_model())).find("'cplex', expected highs or gurobi"), std::string::npos);
  setenv("HEDDLE_MILP_SOLVER", "gurobi", 1);
  setenv("HEDDLE_GUROBI", (folder_ / "nothing").c_str(), 1);
  solution = solve(small_model());
  ASSERT_FALSE(solution.ok());
  EXPECT_EQ(solution.error().code(), Code::kUnsupported);
  EXPECT_NE(error_of(solution).find("of HEDDLE_GUROBI is no program"), std::string::npos);
  // Found on the PATH.
  script(kRight);
  unsetenv("HEDDLE_GUROBI");
  const std::string path = getenv("PATH");
  setenv("PATH", (folder_.string() + ":" + path).c_str(), 1);
  solution = solve(small_model());
  setenv("PATH", path.c_str(), 1);
  ASSERT_TRUE(solution.ok()) << error_of(solution);
  EXPECT_EQ(solution->solver, "Gurobi 11.0.3");
}

TEST_F(Gurobi, TheSelfTestTellsOfIt) {
  const std::string program = script(kRight);
  SolverSelfTest test = gurobi_self_test();
  EXPECT_EQ(test.gurobi_program, program);
  EXPECT_EQ(test.gurobi_version, "Gurobi 11.0.3");
  EXPECT_DOUBLE_EQ(test.gurobi_value, 9);
  EXPECT_EQ(test.gurobi_error, "");
  script("echo no licence; exit 3");
  test = gurobi_self_test();
  EXPECT_NE(test.gurobi_error.find("no licence"), std::string::npos);
}

TEST(GurobiLog, ReadsTheTableOfNodes) {
  const auto news =
      parse_gurobi_progress(" 2731  1852   84.12500   17  102   91.00000   82.31250  9.55%  32.1   12s");
  ASSERT_TRUE(news);
  EXPECT_DOUBLE_EQ(news->incumbent, 91);
  EXPECT_DOUBLE_EQ(news->bound, 82.3125);
  const auto none =
      parse_gurobi_progress("     0     0   36.50000    0   11          -   36.50000      -     -    0s");
  ASSERT_TRUE(none);
  EXPECT_TRUE(std::isinf(none->incumbent));
  EXPECT_DOUBLE_EQ(none->bound, 36.5);
  for (const char* line : {"", "Presolve time: 0.01s", "  Matrix range [1e+00, 1e+00]", "a b c d e f g 1s"})
    EXPECT_FALSE(parse_gurobi_progress(line)) << line;
}

}  // namespace
}  // namespace heddle
