// Progress of long work. Libraries report to a ProgressSink; the command line draws it as one line with
// elapsed time, best value and gap. Tests pass none.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace heddle {

struct ProgressUpdate {
  std::string what;  // "profiling", "planner heft"
  double done = 0;   // done and total in the same unit; total 0 when unknown
  double total = 0;
  std::optional<double> best_us;   // best objective so far
  std::optional<double> bound_us;  // proven bound so far
};

// report() may be called from any thread and often; implementations throttle.
class ProgressSink {
 public:
  virtual ~ProgressSink() = default;
  virtual void report(const ProgressUpdate& update) = 0;
  // Ends the line, so that other output can follow.
  virtual void finish() {}
};

// "planner heft  42/100 (42 %)  3.2 s  best 12.3 ms  bound 11.0 ms  gap 11.8 %", without unknown parts.
std::string progress_line(const ProgressUpdate& update, double elapsed_s);

// Draws on stderr, at most ten times a second, for work that takes longer than a second. On a terminal one
// line is redrawn in place; otherwise a new line is written every five seconds. Thread-safe.
class TerminalProgress final : public ProgressSink {
 public:
  TerminalProgress();
  ~TerminalProgress() override;
  TerminalProgress(const TerminalProgress&) = delete;
  TerminalProgress& operator=(const TerminalProgress&) = delete;
  void report(const ProgressUpdate& update) override;
  void finish() override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace heddle
