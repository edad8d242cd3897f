#include "server_watch.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "heddle/base/json.h"
#include "heddle/base/stopwatch.h"
#include "heddle/base/terminal.h"
#include "heddle/base/utc.h"
#include "heddle/report/text_table.h"
#include "heddle/serve/status_tables.h"

namespace heddle::cli {
namespace {

constexpr double kWatchPatience_s = 5;

// Writes blocks: on a terminal each over the one before, else one after the other.
class Screen {
 public:
  // Before the block is made, whose tables are as wide as the terminal: it may have another size by now.
  void begin() const {
    if (terminal_) set_table_width(terminal_width(STDOUT_FILENO));
  }
  void show(const std::string& block) {
    if (!terminal_) {
      print("{}\n", block);
    } else {
      const int rows = std::max(terminal_height(STDOUT_FILENO), 2);
      std::string out = first_ ? "\x1b[2J\x1b[H" : "\x1b[H";
      size_t at = 0;
      for (int row = 1; row < rows && at < block.size(); ++row) {
        const size_t end = std::min(block.find('\n', at), block.size());
        out += without_controls(block.substr(at, end - at)) + "\x1b[K\n";
        at = end + 1;
      }
      out += "\x1b[J";
      std::fwrite(out.data(), 1, out.size(), stdout);
    }
    first_ = false;
    std::fflush(stdout);
  }

 private:
  const bool terminal_ = is_terminal(STDOUT_FILENO);
  bool first_ = true;
};

}  // namespace

Result<int> watch_status(const LoadTarget& target, double seconds, const Invocation& invocation) {
  using Clock = std::chrono::steady_clock;
  const auto step = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  if (invocation.progress) invocation.progress->finish();
  Screen screen;
  Json before;
  Stopwatch since_before;
  bool first = true;
  for (auto next = Clock::now(); !invocation.cancel.cancelled() && std::ferror(stdout) == 0; first = false) {
    auto status = ask_json(target, "GET", "/v2/status", "", kWatchPatience_s);
    if (!status.ok() && first) return std::move(status).error();
    screen.begin();
    if (invocation.json) {
      const Json line = status.ok() ? *status : Json{{"error", status.error().to_string()}};
      print("{}\n", json_text(line));
      std::fflush(stdout);
    } else if (!status.ok()) {
      screen.show(utc_now() + ": " + status.error().to_string() + "\n");
    } else {
      screen.show(watch_text(before.is_null() ? nullptr : &before, *status, since_before.seconds()));
    }
    before = status.ok() ? std::move(*status) : Json();
    since_before = Stopwatch();
    next = std::max(next + step, Clock::now());
    while (!invocation.cancel.cancelled() && Clock::now() < next)
      std::this_thread::sleep_for(
          std::min<Clock::duration>(std::chrono::milliseconds(20), next - Clock::now()));
  }
  return kExitDone;
}

}  // namespace heddle::cli
