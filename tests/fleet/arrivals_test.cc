#include "heddle/fleet/arrivals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>

#include "heddle/fleet/event_queue.h"
#include "heddle/fleet/random.h"
#include "heddle/fleet/statistics.h"

namespace heddle {
namespace {

using testing::HasSubstr;

std::vector<Arrival> arrivals(const Traffic& traffic, std::vector<double> rates, double duration,
                              uint64_t seed) {
  auto result = make_arrivals(traffic, rates, duration, seed);
  EXPECT_TRUE(result.ok()) << result.error().to_string();
  return std::move(result).value();
}

TEST(Arrivals, EveryKindHasItsMeanRateAndIsSorted) {
  const auto csv = synthetic_function_trace({}, 3);
  ASSERT_TRUE(csv.ok());
  const auto trace = function_trace_from_csv(*csv);
  ASSERT_TRUE(trace.ok());
  for (const auto kind :
       {TrafficKind::kPoisson, TrafficKind::kDiurnal, TrafficKind::kBursty, TrafficKind::kFunctions}) {
    for (const bool folded : {true, false}) {
      Traffic t;
      t.kind = kind;
      t.folded = folded;
      t.functions = &*trace;
      const auto a = arrivals(t, {500, 0, 1500}, 200, 5);
      EXPECT_TRUE(
          std::is_sorted(a.begin(), a.end(), [](const Arrival& x, const Arrival& y) { return x.at < y.at; }));
      double count[3] = {};
      for (const auto& x : a) ++count[x.model];
      EXPECT_NEAR(count[0] / 200, 500, 25) << traffic_name(kind) << folded;
      EXPECT_EQ(count[1], 0);
      EXPECT_NEAR(count[2] / 200, 1500, 75) << traffic_name(kind) << folded;
      EXPECT_EQ(traffic_named(traffic_name(kind)), kind);
      EXPECT_EQ(a, arrivals(t, {500, 0, 1500}, 200, 5));
    }
  }
  EXPECT_FALSE(traffic_named("steady").has_value());
}

TEST(Arrivals, DispersionIsTheStatedOne) {
  Traffic t;
  const auto poisson = arrivals(t, {1000}, 400, 1);
  EXPECT_NEAR(*measured_dispersion(poisson, 400, .5), *index_of_dispersion(t, 1000), .2);
  t.kind = TrafficKind::kBursty;
  t.peak = 3;
  t.burst_share = .1;
  t.burst_s = .05;
  const double stated = *index_of_dispersion(t, 1000);
  EXPECT_DOUBLE_EQ(stated, 41);
  // Windows much longer than a burst.
  EXPECT_NEAR(*measured_dispersion(arrivals(t, {1000}, 4000, 1), 4000, 5) / stated, 1, .15);
  EXPECT_FALSE(measured_dispersion(poisson, 1, 1).has_value());
}

TEST(Arrivals, FoldingAddsUpTheTraceAndCompressionKeepsItsShape) {
  // Starts 0, 1, 10, 11 s at a rate of 1/s: one fold is three seconds. Modulo 3: 0, 1, 1, 2.
  FunctionTrace trace;
  trace.start_s = {0, 1, 10, 11};
  Traffic t;
  t.kind = TrafficKind::kFunctions;
  t.functions = &trace;
  std::vector<double> at;
  for (const auto& a : arrivals(t, {1}, 3, 1)) at.push_back(seconds_from_ns(a.at));
  EXPECT_EQ(at, (std::vector<double>{0, 1, 1, 2}));
  t.folded = false;
  at.clear();
  for (const auto& a : arrivals(t, {1}, 3.0001, 1))
    at.push_back(std::round(seconds_from_ns(a.at) * 100) / 100);
  EXPECT_EQ(at, (std::vector<double>{0, .27, 2.73, 3}));
}

TEST(Arrivals, RefusesWhatIsOutOfRange) {
  Traffic t;
  EXPECT_FALSE(make_arrivals(t, std::vector<double>{-1}, 1, 1).ok());
  EXPECT_FALSE(make_arrivals(t, std::vector<double>{std::nan("")}, 1, 1).ok());
  EXPECT_FALSE(make_arrivals(t, std::vector<double>{1}, 0, 1).ok());
  EXPECT_FALSE(make_arrivals(t, std::vector<double>{1e9}, 1e6, 1).ok());
  t.kind = TrafficKind::kBursty;
  t.peak = 20;
  EXPECT_FALSE(make_arrivals(t, std::vector<double>{1}, 1, 1).ok());
  t.peak = 2;
  t.burst_s = 1e-6;
  EXPECT_FALSE(make_arrivals(t, std::vector<double>{1}, 1e4, 1).ok()) << "it would never end";
  t.kind = TrafficKind::kFunctions;
  EXPECT_FALSE(make_arrivals(t, std::vector<double>{1}, 1, 1).ok());
  t.kind = TrafficKind::kDiurnal;
  t.period_s = 0;
  EXPECT_FALSE(make_arrivals(t, std::vector<double>{1}, 1, 1).ok());
}

TEST(RecordedArrivals, AreReadWithAndWithoutModels) {
  const std::vector<std::string> one = {"a"}, two = {"alpha", "beta"};
  auto r = arrivals_from_csv("time_us\n5\n2.5\r\n\n7", one);
  ASSERT_TRUE(r.ok()) << r.error().to_string();
  EXPECT_EQ(*r, (std::vector<Arrival>{{2500, 0}, {5000, 0}, {7000, 0}}));
  r = arrivals_from_csv("time_us,model\n5,beta\n5,alpha\n", two);
  ASSERT_TRUE(r.ok()) << r.error().to_string();
  EXPECT_EQ(*r, (std::vector<Arrival>{{5000, 0}, {5000, 1}}));
  scale_arrivals(*r, 2);
  EXPECT_EQ((*r)[0].at, 2500);
}

TEST(RecordedArrivals, MalformedLinesAreNamed) {
  const std::vector<std::string> one = {"a"}, two = {"alpha", "beta"};
  const auto message = [](std::string_view text, const std::vector<std::string>& models) {
    const auto r = arrivals_from_csv(text, models);
    return r.ok() ? std::string("accepted") : r.error().to_string();
  };
  EXPECT_THAT(message("when\n5\n", one), HasSubstr("line 1: 'when', expected the header"));
  EXPECT_THAT(message("time_us\n5\nx\n", one), HasSubstr("line 3: 'x' is not a time"));
  EXPECT_THAT(message("time_us\n-1\n", one), HasSubstr("line 2"));
  EXPECT_THAT(message("time_us\nnan\n", one), HasSubstr("line 2"));
  EXPECT_THAT(message("time_us\n1e300\n", one), HasSubstr("line 2"));
  EXPECT_THAT(message("time_us\n5,a\n", one), HasSubstr("line 2: more than the time"));
  EXPECT_THAT(message("time_us\n5\n", two), HasSubstr("no column 'model'"));
  EXPECT_THAT(message("time_us,model\n5\n", two), HasSubstr("line 2: the model is missing"));
  EXPECT_THAT(message("time_us,model\n5,bta\n", two), HasSubstr("did you mean 'beta'?"));
  EXPECT_THAT(message("time_us\n", one), HasSubstr("no arrival"));
  EXPECT_THAT(message("", one), HasSubstr("no arrival"));
}

TEST(FunctionTrace, StartsAreEndsLessDurationsFromTheEarliest) {
  const auto r =
      function_trace_from_csv("app,func,end_timestamp,duration\na,f,12.5,2.5\r\na,f,11,.5\nb,f,20,8\n");
  ASSERT_TRUE(r.ok()) << r.error().to_string();
  EXPECT_EQ(r->start_s, (std::vector<double>{0, .5, 2}));
  EXPECT_EQ(r->functions, 2u);
}

TEST(FunctionTrace, AFileGivesWhatItsTextGives) {
  const auto text = synthetic_function_trace({.functions = 7, .duration_s = 5}, 2);
  ASSERT_TRUE(text.ok());
  const auto whole = function_trace_from_csv(*text);
  ASSERT_TRUE(whole.ok());
  const auto path = std::filesystem::temp_directory_path() / "heddle_function_trace_test.csv";
  std::ofstream(path) << *text;
  const auto file = read_function_trace(path.string());
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->start_s, whole->start_s);
  std::filesystem::remove(path);
  const auto gone = read_function_trace(path.string());
  ASSERT_FALSE(gone.ok());
  EXPECT_EQ(gone.error().code(), Code::kNotFound);
}

TEST(FunctionTrace, MalformedLinesAreNamed) {
  const auto message = [](const std::string& lines) {
    const auto r = function_trace_from_csv("app,func,end_timestamp,duration\na,f,1,1\n" + lines);
    return r.ok() ? std::string("accepted") : r.error().to_string();
  };
  EXPECT_EQ(message(""), "accepted");
  EXPECT_THAT(message("a,f,1\n"), HasSubstr("line 3: 3 field(s)"));
  EXPECT_THAT(message("a,f,1,1,1\n"), HasSubstr("line 3: more than four"));
  EXPECT_THAT(message("a,,1,1\n"), HasSubstr("line 3: app and func"));
  EXPECT_THAT(message("a,f,soon,1\n"), HasSubstr("line 3: end_timestamp 'soon'"));
  EXPECT_THAT(message("a,f,inf,1\n"), HasSubstr("line 3: end_timestamp"));
  EXPECT_THAT(message("a,f,1,-1\n"), HasSubstr("line 3: duration '-1'"));
  EXPECT_THAT(message("a,f,1,nan\n"), HasSubstr("line 3: duration"));
  EXPECT_THAT(message(std::string(5000, 'a')), HasSubstr("line 3: longer than"));
  EXPECT_THAT(function_trace_from_csv("").error().to_string(), HasSubstr("line 1"));
  EXPECT_THAT(function_trace_from_csv("app,func,end_timestamp,duration\n").error().to_string(),
              HasSubstr("no invocation"));
}

TEST(FunctionTrace, TheGeneratorHasTheStatedBurstiness) {
  const FunctionTraceOptions o{.duration_s = 4000, .rate_per_s = 50, .clump_size = 4, .clump_gap_s = .01};
  const auto text = synthetic_function_trace(o, 8);
  ASSERT_TRUE(text.ok());
  const auto trace = function_trace_from_csv(*text);
  ASSERT_TRUE(trace.ok());
  std::vector<Arrival> a;
  for (const double s : trace->start_s) a.push_back({ns_from_us(s * 1e6), 0});
  EXPECT_NEAR(static_cast<double>(a.size()) / 4000, 50, 2);
  EXPECT_NEAR(*measured_dispersion(a, 4000, 5), 2 * o.clump_size - 1, .8);
  EXPECT_FALSE(synthetic_function_trace({.functions = 0}, 1).ok());
  EXPECT_FALSE(synthetic_function_trace({.clump_size = .5}, 1).ok());
}

TEST(DurationHistogram, PercentilesAreWithinABucket) {
  Random random = random_stream(1, 1);
  std::vector<TimeNs> values;
  DurationHistogram all, halves[2];
  for (int i = 0; i < 20000; ++i) {
    const auto v = static_cast<TimeNs>(random.below(uint64_t{1} << (1 + random.below(50))));
    values.push_back(v);
    all.add(v);
    halves[i % 2].add(v);
  }
  halves[0].merge(halves[1]);
  std::sort(values.begin(), values.end());
  for (const double q : {0., .01, .5, .9, .99, 1.}) {
    const auto rank = std::max<size_t>(1, static_cast<size_t>(std::ceil(q * 20000)));
    const auto exact = static_cast<double>(values[rank - 1]);
    const auto got = static_cast<double>(all.percentile(q));
    EXPECT_GE(got, exact);
    EXPECT_LE(got, exact * (1 + 1. / 256) + 1);
    EXPECT_EQ(all.percentile(q), halves[0].percentile(q));
  }
  EXPECT_EQ(DurationHistogram().percentile(.5), 0);
}

TEST(DurationHistogram, CoarseRangesHoldEveryValue) {
  Random random = random_stream(1, 2);
  std::vector<TimeNs> values;
  DurationHistogram all;
  for (int i = 0; i < 1000; ++i) {
    values.push_back(static_cast<TimeNs>(random.below(uint64_t{1} << (1 + random.below(40)))));
    all.add(values.back());
  }
  std::sort(values.begin(), values.end());
  size_t seen = 0;
  for (const auto& [last, count] : all.coarse()) {
    EXPECT_LE(values[seen + count - 1], last);
    EXPECT_GE(static_cast<double>(values[seen]) * (1 + 1. / 16) + 16, static_cast<double>(last));
    seen += count;
  }
  EXPECT_EQ(seen, values.size());
}

TEST(EventQueue, GivesEventsByTimeThenByOrder) {
  Random random = random_stream(2, 2);
  EventQueue<int> queue;
  std::vector<std::pair<TimeNs, int>> expected;
  for (int i = 0; i < 3000; ++i) {
    const auto at = static_cast<TimeNs>(random.below(500));
    queue.push(at, i);
    expected.emplace_back(at, i);
  }
  std::sort(expected.begin(), expected.end());
  for (const auto& [at, i] : expected) {
    const auto event = queue.pop();
    ASSERT_EQ(event.at, at);
    ASSERT_EQ(event.payload, i);
  }
  EXPECT_TRUE(queue.empty());
}

// Compared with a sorted set. Times include near and very far ones, equal ones, and ones before the last
// popped. There are enough events to lay out the buckets several times.
TEST(EventQueue, IsTheSortedOrderWhateverTheTimes) {
  for (const uint64_t seed : {1, 2, 3, 4}) {
    Random random = random_stream(seed, 3);
    EventQueue<int> queue;
    std::set<std::pair<TimeNs, int>> expected;
    TimeNs now = 0;
    int next = 0;
    for (int turn = 0; turn < 60000; ++turn) {
      const bool filling = (turn / 10000) % 2 == 0;
      if (expected.empty() || random.chance(filling ? .6 : .4)) {
        const uint64_t spread = random.below(5);
        TimeNs at = now + static_cast<TimeNs>(random.below(uint64_t{10} << (12 * spread)));
        if (random.chance(.02)) at = now;
        if (random.chance(.01)) at = now / 2;
        if (random.chance(.001)) at = kNever;
        queue.push(at, next);
        expected.emplace(at, next++);
      } else {
        ASSERT_EQ(queue.next_at(), expected.begin()->first);
        const auto event = queue.pop();
        ASSERT_EQ(event.at, expected.begin()->first);
        ASSERT_EQ(event.payload, expected.begin()->second);
        expected.erase(expected.begin());
        if (event.at < kNever) now = event.at;
      }
      ASSERT_EQ(queue.empty(), expected.empty());
    }
  }
}

}  // namespace
}  // namespace heddle
