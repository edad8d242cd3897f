#include "heddle/fleet/function_trace.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <unordered_set>

#include "heddle/fleet/random.h"

namespace heddle {
namespace {

constexpr std::string_view kHeader = "app,func,end_timestamp,duration";
constexpr size_t kLongestLine = 4096;
constexpr size_t kMostInvocations = 200'000'000;
constexpr double kLatest = 1e9;  // seconds: thirty years

bool to_number(std::string_view text, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(value);
}

Error line_error(uint64_t line, const std::string& message) {
  return Error(Code::kInvalidInput, "line " + std::to_string(line) + ": " + message);
}

}  // namespace

struct FunctionTraceReader::State {
  FunctionTrace trace;
  std::unordered_set<std::string> functions;
  std::string rest;  // beginning of a line whose end has not been read yet
  uint64_t line = 0;

  Status take(std::string_view text) {
    ++line;
    if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
    if (line == 1) {
      if (text == kHeader) return {};
      return line_error(
          1, "'" + std::string(text.substr(0, 80)) + "', expected the header '" + std::string(kHeader) + "'");
    }
    if (text.empty()) return {};
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
    if (trace.start_s.size() == kMostInvocations)
      return line_error(line,
                        "more than " + std::to_string(kMostInvocations) + " invocations; cut the trace");
    functions.insert(std::string(text.substr(0, field[0].size() + 1 + field[1].size())));
    trace.start_s.push_back(end - duration);
    return {};
  }
};

FunctionTraceReader::FunctionTraceReader() : state_(new State) {}
FunctionTraceReader::~FunctionTraceReader() { delete state_; }

Status FunctionTraceReader::feed(std::string_view piece) {
  while (!piece.empty()) {
    const size_t end = piece.find('\n');
    const auto part = piece.substr(0, end);
    if (state_->rest.size() + part.size() > kLongestLine)
      return line_error(state_->line + 1, "longer than " + std::to_string(kLongestLine) + " characters");
    if (end == std::string_view::npos) {
      state_->rest += part;
      return {};
    }
    if (state_->rest.empty()) {
      HEDDLE_RETURN_IF_ERROR(state_->take(part));
    } else {
      state_->rest += part;
      HEDDLE_RETURN_IF_ERROR(state_->take(state_->rest));
      state_->rest.clear();
    }
    piece.remove_prefix(end + 1);
  }
  return {};
}

Result<FunctionTrace> FunctionTraceReader::finish() {
  if (!state_->rest.empty() || state_->line == 0) HEDDLE_RETURN_IF_ERROR(state_->take(state_->rest));
  state_->rest.clear();
  auto& starts = state_->trace.start_s;
  if (starts.empty()) return line_error(state_->line, "the trace has no invocation");
  std::sort(starts.begin(), starts.end());
  const double first = starts.front();
  for (double& s : starts) s -= first;
  state_->trace.functions = static_cast<uint32_t>(state_->functions.size());
  return std::move(state_->trace);
}

Result<FunctionTrace> function_trace_from_csv(std::string_view text) {
  FunctionTraceReader reader;
  HEDDLE_RETURN_IF_ERROR(reader.feed(text));
  return reader.finish();
}

Result<FunctionTrace> read_function_trace(const std::string& path, ProgressSink* progress) {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file)
    return Error(errno == ENOENT ? Code::kNotFound : Code::kIo,
                 std::string("cannot open: ") + std::strerror(errno))
        .with_context(path);
  double size = 0;
  if (std::fseek(file.get(), 0, SEEK_END) == 0)
    size = static_cast<double>(std::max(0L, std::ftell(file.get())));
  std::rewind(file.get());
  FunctionTraceReader reader;
  std::vector<char> piece(1 << 20);
  for (double done = 0;;) {
    const size_t n = std::fread(piece.data(), 1, piece.size(), file.get());
    if (n == 0) break;
    if (auto status = reader.feed({piece.data(), n}); !status.ok())
      return std::move(status).error().with_context(path);
    done += static_cast<double>(n);
    if (progress) progress->report({.what = "reading " + path, .done = done, .total = size});
  }
  if (std::ferror(file.get())) return Error(Code::kIo, "cannot read").with_context(path);
  auto trace = reader.finish();
  if (!trace.ok()) return std::move(trace).error().with_context(path);
  return trace;
}

Result<std::string> synthetic_function_trace(const FunctionTraceOptions& o, uint64_t seed) {
  const bool numbers = o.duration_s > 0 && o.duration_s <= 1e7 && o.rate_per_s > 0 && o.clump_size >= 1 &&
                       o.clump_size <= 1e6 && o.clump_gap_s >= 0 && o.clump_gap_s <= 1e6 &&
                       o.popularity_power >= 0 && o.popularity_power <= 10;
  if (!numbers || o.functions < 1 || o.functions > 1'000'000 || !(o.duration_s * o.rate_per_s <= 1e8))
    return Error(Code::kInvalidInput,
                 "a synthetic trace needs 1 to 1e6 functions, a duration of at most 1e7 s, at most 1e8 "
                 "invocations and clumps of 1 to 1e6 with gaps of 0 to 1e6 s");
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
  for (double t = exponential(random) / clump_rate; t < o.duration_s; t += exponential(random) / clump_rate) {
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
  char line[96];
  for (const auto& i : invocations) {
    std::snprintf(line, sizeof line, "app%u,func%u,%.6f,%.3f\n", i.function / 4, i.function, i.start + .1,
                  .1);
    text += line;
  }
  return text;
}

}  // namespace heddle
