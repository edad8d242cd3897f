// Models to which a release of CP-SAT gave a wrong answer: by Heddle's settings the answers are right.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "heddle/base/file.h"
#include "heddle/solve/cp.h"
#include "heddle/solve/cross_check.h"
#include "ortools/sat/cp_model.pb.h"

namespace heddle {
namespace {

// The model of a file that `heddle bench solvers` keeps: schedules of intervals at fixed lengths.
class KeptModel {
 public:
  explicit KeptModel(const std::string& file) {
    const auto text = read_file(file);
    if (!text.ok() || !google::protobuf::TextFormat::ParseFromString(*text, &proto_)) return;
    for (const auto& v : proto_.variables()) model.add_integer(v.domain(0), v.domain(1));
    for (const auto& c : proto_.constraints()) add(c);
    model.minimise(expression(proto_.objective()));
    read = true;
  }

  CpModel model;
  bool read = false;

 private:
  static std::vector<CpLit> literals(const auto& numbers) {
    std::vector<CpLit> out;
    for (const int32_t number : numbers) out.push_back({number});
    return out;
  }
  static CpExpr expression(const auto& sum) {
    CpExpr out;
    for (int i = 0; i < sum.vars_size(); ++i) out.add(CpVar{sum.vars(i)}, sum.coeffs(i));
    if constexpr (requires { sum.offset(); }) out.constant = static_cast<int64_t>(sum.offset());
    return out;
  }

  void add(const cp_sat::ConstraintProto& c) {
    const auto when = literals(c.enforcement_literal());
    CpInterval interval;
    if (c.has_exactly_one())
      model.exactly_one(literals(c.exactly_one().literals()));
    else if (c.has_linear())
      model.linear(c.linear().domain(0), expression(c.linear()), c.linear().domain(1), when);
    else if (c.has_interval())
      interval = model.interval(expression(c.interval().start()), expression(c.interval().size()),
                                expression(c.interval().end()), when);
    else if (c.has_no_overlap())
      no_overlap(c.no_overlap());
    intervals_.push_back(interval);
  }
  void no_overlap(const cp_sat::NoOverlapConstraintProto& c) {
    std::vector<CpInterval> members;
    for (const int32_t i : c.intervals()) members.push_back(intervals_[static_cast<size_t>(i)]);
    model.no_overlap(members);
  }

  cp_sat::CpModelProto proto_;
  std::vector<CpInterval> intervals_;  // by number of the constraint
};

TEST(KeptModels, ScheduleThatPresolveMakesLonger) {
  const KeptModel kept(HEDDLE_SOURCE_DIR "/tests/corpus/solvers/solvers-schedules-21171.pb.txt");
  ASSERT_TRUE(kept.read);
  for (uint64_t seed = 0; seed < 12; ++seed) {
    SolveOptions options;
    options.seed = seed;
    const auto solution = solve(kept.model, options);
    if (!solution.ok() && solution.error().code() == Code::kUnsupported) GTEST_SKIP() << "CP-SAT is missing";
    ASSERT_TRUE(solution.ok()) << solution.error().to_string();
    EXPECT_EQ(solution->status, SolveStatus::kOptimal);
    EXPECT_EQ(solution->objective, 32) << "seed " << seed;
    EXPECT_EQ(solution->bound, 32) << "seed " << seed;
  }
  const auto by_highs = solve(to_milp(kept.model), SolveOptions());
  ASSERT_TRUE(by_highs.ok());
  EXPECT_NEAR(by_highs->objective, 32, 1e-6);
}

}  // namespace
}  // namespace heddle
