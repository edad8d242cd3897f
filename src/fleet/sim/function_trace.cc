#include "heddle/fleet/function_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <unordered_set>

#include "heddle/base/errors.h"
#include "heddle/base/mapped_file.h"
#include "heddle/base/numbers.h"
#include "heddle/fleet/random.h"

namespace heddle {
namespace {

constexpr std::string_view kHeader = "app,func,end_timestamp,duration";
constexpr size_t kLongestLine = 4096;
constexpr int64_t kMaxTraceBytes = int64_t{1} << 36;
constexpr size_t kMostInvocations = 200'000'000;
constexpr double kLatest = 1e9;  // seconds: thirty years

bool to_number(std::string_view text, double& value) {
  value = parse_number<double>(text).value_or(NAN);
  return std::isfinite(value);
}

Error line_error(uint64_t line, const std::string& message) {
  return invalid_input("line " + std::to_string(line) + ": " + message);
}

// The start of a line's invocation, in seconds; its function goes into `functions`.
Result<double> read_invocation(std::string_view text, uint64_t line,
                               std::unordered_set<std::string>& functions) {
  std::string_view field[4];
  size_t fields = 0, begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] != ',') continue;
    if (fields == 4) return line_error(line, "more than four fields; expected " + std::string(kHeader));
    field[fields++] = text.substr(begin, i - begin);
    begin = i + 1;
  }
  if (fields != 4)
    return line_error(line, std::to_string(fields) + " field(s); expected " + std::string(kHeader));
  if (field[0].empty() || field[1].empty()) return line_error(line, "app and func must not be empty");
  double end = 0, duration = 0;
  if (!to_number(field[2], end) || std::fabs(end) > kLatest)
    return line_error(
        line, "end_timestamp '" + std::string(field[2].substr(0, 40)) + "' is not a number of seconds");
  if (!to_number(field[3], duration) || duration < 0 || duration > kLatest)
    return line_error(
        line, "duration '" + std::string(field[3].substr(0, 40)) + "' is not a number of seconds from 0");
  functions.insert(std::string(text.substr(0, field[0].size() + 1 + field[1].size())));
  return end - duration;
}

}  // namespace

Result<FunctionTrace> function_trace_from_csv(std::string_view text, ProgressSink* progress) {
  FunctionTrace trace;
  std::unordered_set<std::string> functions;
  uint64_t line = 0;
  for (size_t begin = 0; begin < text.size() || line == 0;) {
    auto part = text.substr(begin, text.find('\n', begin) - begin);
    begin += part.size() + 1;
    ++line;
    if (part.size() > kLongestLine)
      return line_error(line, "longer than " + std::to_string(kLongestLine) + " characters");
    if (part.ends_with('\r')) part.remove_suffix(1);
    if (line == 1 && part != kHeader)
      return line_error(
          1, "'" + std::string(part.substr(0, 80)) + "', expected the header '" + std::string(kHeader) + "'");
    if (line == 1 || part.empty()) continue;
    if (trace.start_s.size() == kMostInvocations)
      return line_error(line,
                        "more than " + std::to_string(kMostInvocations) + " invocations; cut the trace");
    HEDDLE_ASSIGN_OR_RETURN(const double start_s, read_invocation(part, line, functions));
    trace.start_s.push_back(start_s);
    if (progress && trace.start_s.size() % 10'000 == 0)
      progress->report({.what = "reading the trace",
                        .done = static_cast<double>(begin),
                        .total = static_cast<double>(text.size())});
  }
  auto& starts = trace.start_s;
  if (starts.empty()) return line_error(line, "the trace has no invocation");
  std::sort(starts.begin(), starts.end());
  const double first = starts.front();
  for (double& s : starts) s -= first;
  trace.functions = static_cast<uint32_t>(functions.size());
  return trace;
}

Result<FunctionTrace> read_function_trace(const std::string& path, ProgressSink* progress) {
  HEDDLE_ASSIGN_OR_RETURN(const auto file, with_context(MappedFile::open(path, kMaxTraceBytes), path));
  return with_context(function_trace_from_csv(file.bytes(), progress), path);
}

Result<std::string> synthetic_function_trace(const FunctionTraceOptions& o, uint64_t seed) {
  const bool numbers = o.duration_s > 0 && o.duration_s <= 1e7 && o.rate_per_s > 0 && o.clump_size >= 1 &&
                       o.clump_size <= 1e6 && o.clump_gap_s >= 0 && o.clump_gap_s <= 1e6 &&
                       o.popularity_power >= 0 && o.popularity_power <= 10 && o.swing >= 0 && o.swing <= 1 &&
                       o.period_s > 0;
  if (!numbers || o.functions < 1 || o.functions > 1'000'000 || !(o.duration_s * o.rate_per_s <= 1e8))
    return invalid_input(
        "a synthetic trace needs 1 to 1e6 functions, a duration of at most 1e7 s, at most 1e8 "
        "invocations, clumps of 1 to 1e6 with gaps of 0 to 1e6 s, and a swing of 0 to 1");
  std::vector<double> up_to;  // cumulative popularity
  double sum = 0;
  for (uint32_t f = 0; f < o.functions; ++f) {
    sum += std::pow(f + 1.0, -o.popularity_power);
    up_to.push_back(sum);
  }
  Random random = random_stream(seed, 0);
  struct Invocation {
    double start;
    uint32_t function;
  };
  std::vector<Invocation> invocations;
  // Clumps arrive as a Poisson process; each has one function and a geometric number of invocations.
  const double clump_rate = o.rate_per_s / o.clump_size;
  const double most = clump_rate * (1 + o.swing);
  for (double t = exponential(random) / most; t < o.duration_s; t += exponential(random) / most) {
    if (o.swing > 0 &&
        random.unit() * (1 + o.swing) >= 1 + o.swing * std::sin(2 * std::numbers::pi * t / o.period_s))
      continue;
    const auto f = static_cast<uint32_t>(
        std::lower_bound(up_to.begin(), up_to.end() - 1, random.unit() * sum) - up_to.begin());
    double at = t;
    do {
      invocations.push_back({at, f});
      at += exponential(random) * o.clump_gap_s;
    } while (!random.chance(1 / o.clump_size));
  }
  if (invocations.empty()) invocations.push_back({0, 0});
  std::stable_sort(invocations.begin(), invocations.end(),
                   [](const Invocation& a, const Invocation& b) { return a.start < b.start; });
  std::string text(kHeader);
  text += '\n';
  for (const auto& i : invocations)
    text += fmt::format("app{},func{},{:.6f},{:.3f}\n", i.function / 4, i.function, i.start + .1, .1);
  return text;
}

}  // namespace heddle
