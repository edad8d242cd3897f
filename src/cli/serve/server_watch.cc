#include "server_watch.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <thread>

#include "heddle/base/json.h"
#include "heddle/base/json_fields.h"
#include "heddle/base/stopwatch.h"
#include "heddle/base/terminal.h"
#include "heddle/base/units.h"
#include "heddle/base/utc.h"
#include "heddle/report/text_table.h"
#include "heddle/serve/status_fields.h"
#include "status_tables.h"

namespace heddle::cli {
namespace {

using Align = TextTable::Align;

constexpr double kWatchPatience_s = 5;

// Requests that got their outcome since `before`. A server that has started anew counts from 0.
SettledRequests asked_since(const Json* before, const Json& now) {
  SettledRequests asked = settled_requests(now);
  if (before == nullptr) return asked;
  const SettledRequests then = settled_requests(*before);
  if (then.all <= asked.all && then.in_time <= asked.in_time) {
    asked.all -= then.all;
    asked.in_time -= then.in_time;
  }
  return asked;
}

// The greatest latency of all but 1 % of the requests since `before`, in us; 0: there were none.
double p99_since(const Json* before, const Json& now) {
  std::map<double, double> counts;
  const auto add = [&counts](const Json& model, double sign) {
    for (const auto& range : list_in(model, "latency_ranges"))
      if (range.is_array() && range.size() == 2 && range[0].is_number() && range[1].is_number())
        counts[range[0].get<double>()] += sign * range[1].get<double>();
  };
  add(now, 1);
  if (before != nullptr) add(*before, -1);
  // They begin anew with each plan.
  if (std::ranges::any_of(counts, [](const auto& c) { return c.second < 0; })) return p99_since(nullptr, now);
  double all = 0, below = 0;
  for (const auto& [us, count] : counts) all += count;
  for (const auto& [us, count] : counts)
    if (count > 0 && (below += count) >= .99 * all) return us;
  return 0;
}

std::string per_second(double count, double seconds) {
  return seconds > 0 ? format_requests(count / seconds) : "";
}

std::string watched_models(const Json* before, const Json& now, double seconds) {
  TextTable table({{"model", Align::kLeft, 36},
                   {"SLO", Align::kRight},
                   {"rate", Align::kRight},
                   {"planned", Align::kRight},
                   {"in time", Align::kRight},
                   {"p99", Align::kRight},
                   {"queue", Align::kRight},
                   {"in time so far", Align::kRight}});
  for (const auto& m : list_in(now, "models")) {
    const Json* was = before == nullptr ? nullptr : member_in(list_in(*before, "models"), text_in(m, "name"));
    const SettledRequests lately = asked_since(was, m), ever = asked_since(nullptr, m);
    const double p99_us = p99_since(was, m);
    const bool rates = seconds > 0 && lately.all > 0;
    table.add_row({text_in(m, "name"), format_us(number_in(m, "slo_us")), per_second(lately.all, seconds),
                   format_requests(number_in(m, "rate_per_s")),
                   rates ? percent(lately.in_time / lately.all) : "",
                   rates && p99_us > 0 ? format_us(p99_us) : "", whole_text(m, "queued"),
                   ever.all > 0 ? percent(ever.in_time / ever.all) : ""});
  }
  return table.to_string();
}

std::string watched_devices(const Json& now) {
  struct Use {
    double busy = 0, devices = 0;
  };
  std::map<std::string, Use> uses;  // of virtual devices, lately
  for (const auto& p : list_in(now, "pools")) {
    auto& use = uses[text_in(p, "class")];
    use.busy += number_in(p, "use") * number_in(p, "devices");
    use.devices += number_in(p, "devices");
  }
  TextTable table({{"class", Align::kLeft, 30},
                   {"devices", Align::kRight},
                   {"in plan", Align::kRight},
                   {"busy", Align::kRight},
                   {"lost", Align::kRight},
                   {"drained", Align::kRight},
                   {"use", Align::kRight}});
  for (const auto& c : list_in(now, "classes")) {
    const auto name = text_in(c, "name");
    const Use use = uses[name];
    const auto lost = whole_text(c, "lost");
    table.add_row({name, whole_text(c, "devices"), whole_text(c, "used"), whole_text(c, "busy"),
                   lost == "0" ? lost : painted(Ink::kRed, lost),
                   whole_text(object_in(now, "drained"), name.c_str()),
                   use.devices > 0 ? percent(use.busy / use.devices) : ""});
  }
  return table.to_string();
}

std::string watched_workers(const Json* before, const Json& now, double seconds) {
  if (list_in(now, "workers").empty()) return "";
  TextTable table({{"worker", Align::kLeft, 30},
                   {"state", Align::kLeft, 60},
                   {"virtual", Align::kRight},
                   {"runs", Align::kRight}});
  for (const auto& w : list_in(now, "workers")) {
    const Json* was =
        before == nullptr ? nullptr : member_in(list_in(*before, "workers"), text_in(w, "name"));
    const double runs = number_in(w, "runs") - (was == nullptr ? 0 : number_in(*was, "runs"));
    table.add_row(
        {text_in(w, "name"), worker_state(w), whole_text(w, "virtual_devices"),
         was != nullptr && seconds > 0 ? fmt::format("{:.1f}/s", std::max(runs, 0.0) / seconds) : ""});
  }
  return "\n" + table.to_string();
}

// Writes blocks: on a terminal each over the one before, else one after the other.
class Screen {
 public:
  // Before the block is made, whose tables are as wide as the terminal: it may have another size by now.
  void begin() const {
    if (terminal_) set_table_width(terminal_width(STDOUT_FILENO));
  }
  void show(const std::string& block) {
    if (!terminal_) {
      cli::print("{}\n", block);
    } else {
      const int rows = std::max(terminal_height(STDOUT_FILENO), 2);
      std::string out = first_ ? "\x1b[2J\x1b[H" : "\x1b[H";
      size_t at = 0;
      for (int row = 1; row < rows && at < block.size(); ++row) {
        const size_t end = std::min(block.find('\n', at), block.size());
        out += block.substr(at, end - at) + "\x1b[K\n";
        at = end + 1;
      }
      cli::print("{}\x1b[J", out);
    }
    first_ = false;
    std::fflush(stdout);
  }

 private:
  const bool terminal_ = is_terminal(STDOUT_FILENO);
  bool first_ = true;
};

}  // namespace

std::string watch_text(const Json* before, const Json& now, double seconds) {
  if (before == nullptr) seconds = 0;
  std::string out = text_in(now, "fleet") + " at " + utc_now() + ": " + text_in(now, "state") +
                    ", plans so far: " + whole_text(now, "plans") + leader_text(now) + "\n" +
                    watched_models(before, now, seconds) + "\n" + watched_devices(now) +
                    watched_workers(before, now, seconds) + sessions_table(now);
  const Json& changes = list_in(now, "changes");
  if (!changes.empty())
    out += "\nlast change: " + text_in(changes.back(), "at") + " " + text_in(changes.back(), "what") + ": " +
           text_in(changes.back(), "text") + "\n";
  return out;
}

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
      cli::print("{}\n", json_text(line));
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
