#include "heddle/base/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <mutex>

#include "heddle/base/gap.h"
#include "heddle/base/log.h"
#include "heddle/base/terminal.h"
#include "heddle/base/units.h"

namespace heddle {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kQuietSeconds = 1;      // shorter work shows no progress
constexpr double kTerminalPeriod = 0.1;  // seconds between two updates
constexpr double kLogPeriod = 5;         // the same for logs, where each update is a new line
constexpr int kDefaultWidth = 80;

std::string format_count(double value) {
  const bool whole = value == std::floor(value) && std::fabs(value) < 1e9;
  return whole ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
}

}  // namespace

std::string progress_line(const ProgressUpdate& update, double elapsed_s) {
  std::string line = update.what;
  if (update.total > 0) {
    line += fmt::format("  {}/{} ({:.0f} %)", format_count(update.done), format_count(update.total),
                        std::floor(100 * update.done / update.total));
  } else if (update.done > 0) {
    line += "  " + format_count(update.done);
  }
  line += fmt::format("  {:.1f} s", elapsed_s);
  if (update.best_us) line += "  best " + format_us(*update.best_us);
  if (update.bound_us) line += "  bound " + format_us(*update.bound_us);
  if (update.best_us && update.bound_us && *update.bound_us > 0) {
    line += fmt::format("  gap {:.1f} %", 100 * relative_gap(*update.best_us, *update.bound_us));
  }
  return line;
}

struct TerminalProgress::State {
  std::mutex mutex;
  const bool terminal = is_terminal(STDERR_FILENO);
  bool running = false;  // between a first report and finish()
  bool drawn = false;    // since the last finish()
  Clock::time_point start;
  Clock::time_point last_draw;
};

TerminalProgress::TerminalProgress() : state_(std::make_unique<State>()) {}

TerminalProgress::~TerminalProgress() { finish(); }

void TerminalProgress::report(const ProgressUpdate& update) {
  const std::lock_guard lock(state_->mutex);
  State& s = *state_;
  const auto now = Clock::now();
  const auto seconds_since = [now](Clock::time_point t) {
    return std::chrono::duration<double>(now - t).count();
  };
  if (!s.running) {
    s.running = true;
    s.start = now;
  }
  const double elapsed = seconds_since(s.start);
  if (elapsed < kQuietSeconds) return;
  if (s.drawn && seconds_since(s.last_draw) < (s.terminal ? kTerminalPeriod : kLogPeriod)) return;
  s.drawn = true;
  s.last_draw = now;
  std::string line = one_line(progress_line(update, elapsed));
  if (!s.terminal) {
    if (log_is_stamped())
      log_line(LogLevel::kInfo, line);
    else
      write_stderr(line + "\n");
    return;
  }
  // A line that wraps could not be redrawn in place.
  const int columns = terminal_width(STDERR_FILENO);
  const auto width = static_cast<size_t>(columns > 0 ? columns : kDefaultWidth);
  if (line.size() >= width) line.resize(width - 1);
  write_stderr("\r" + line + "\x1b[K");
}

void TerminalProgress::finish() {
  const std::lock_guard lock(state_->mutex);
  if (state_->drawn && state_->terminal) write_stderr("\r\x1b[K");
  state_->running = state_->drawn = false;
}

}  // namespace heddle
