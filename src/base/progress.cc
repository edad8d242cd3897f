#include "heddle/base/progress.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <mutex>

#include "heddle/base/units.h"

namespace heddle {

using Clock = std::chrono::steady_clock;

struct TerminalProgress::State {
  std::mutex mutex;
  Clock::time_point began = Clock::now();   // of the current piece of work
  Clock::time_point drawn = {};
  std::string what;
  bool terminal = false;
  bool line_open = false;
};

namespace {

double seconds_between(Clock::time_point a, Clock::time_point b) { return std::chrono::duration<double>(b - a).count(); }

std::string line_for(const ProgressUpdate& u, double elapsed_s) {
  char text[96];
  std::string line = u.what;
  if (u.total > 0) {
    std::snprintf(text, sizeof text, " %.0f/%.0f", u.done, u.total);
    line += text;
  }
  std::snprintf(text, sizeof text, ", %.1f s", elapsed_s);
  line += text;
  if (u.best_us) line += ", best " + format_us(*u.best_us);
  if (u.best_us && u.bound_us && *u.bound_us > 0) {
    std::snprintf(text, sizeof text, ", gap %.1f %%", 100 * (*u.best_us - *u.bound_us) / *u.bound_us);
    line += text;
  }
  return line.substr(0, 99);
}

}  // namespace

TerminalProgress::TerminalProgress() : state_(std::make_unique<State>()) { state_->terminal = isatty(STDERR_FILENO) == 1; }

TerminalProgress::~TerminalProgress() {
  finish();
}

void TerminalProgress::report(const ProgressUpdate& update) {
  const std::lock_guard lock(state_->mutex);
  const auto now = Clock::now();
  if (update.what != state_->what) {
    state_->what = update.what;
    state_->began = now;
  }
  const double elapsed = seconds_between(state_->began, now);
  // Quick work stays silent; a log file gets a line now and then, a terminal ten a second.
  if (elapsed < 1 || seconds_between(state_->drawn, now) < (state_->terminal ? 0.1 : 5)) return;
  state_->drawn = now;
  const auto line = line_for(update, elapsed);
  if (state_->terminal) {
    std::fprintf(stderr, "\r\033[K%s", line.c_str());
    state_->line_open = true;
  } else {
    std::fprintf(stderr, "%s\n", line.c_str());
  }
  std::fflush(stderr);
}

void TerminalProgress::finish() {
  const std::lock_guard lock(state_->mutex);
  if (state_->line_open) std::fprintf(stderr, "\r\033[K");
  state_->line_open = false;
  state_->what.clear();
}

}  // namespace heddle
