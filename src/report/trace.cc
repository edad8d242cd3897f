// Chrome's trace event format, which Perfetto reads, too: complete events ("X") and names as metadata ("M").
#include <algorithm>
#include <map>
#include <vector>

#include "heddle/base/json.h"
#include "heddle/report/timeline_view.h"

namespace heddle {
namespace {

constexpr int kPredicted = 1, kMeasured = 2;
constexpr double kNanosecond_us = 1e-3;  // viewers show no shorter overlap

Json metadata(const char* what, int pid, int tid, const std::string& name) {
  return {{"ph", "M"}, {"name", what}, {"pid", pid}, {"tid", tid}, {"args", {{"name", name}}}};
}

Json complete(const TimelineBar& bar, int pid, int tid, double start, double finish) {
  Json args = {{"critical", bar.critical}, {"step", bar.step.value}};
  for (const auto& [key, value] : bar.details) args[key] = value;
  return {{"ph", "X"},  {"name", bar.name}, {"cat", step_kind_name(bar.kind)}, {"pid", pid},
          {"tid", tid}, {"ts", start},      {"dur", finish - start},           {"args", std::move(args)}};
}

// Bars of one track by thread of the trace, whose events must not overlap. Members of a stage overlap, so each position
// in a stage has threads of its own; so do transfers that share a link, and what was measured later than predicted.
class Threads {
 public:
  explicit Threads(const TimelineView& view) {
    for (const auto& bar : view.bars) row_.push_back(place(bar));
  }

  // Of a bar: its part's first thread is row 0.
  int row(size_t bar) const { return row_[bar]; }
  // Each track has a thread even if nothing is on it.
  size_t rows(const std::string& track, int part) const {
    const auto it = ends_.find({track, part});
    return it != ends_.end() ? it->second.size() : part == 0 ? 1 : 0;
  }

 private:
  struct Ends {
    double predicted_us = 0, measured_us = 0;
  };

  int place(const TimelineBar& bar) {
    auto& ends = ends_[{bar.track, bar.part}];
    const auto free = std::ranges::find_if(ends, [&bar](const Ends& end) {
      return bar.predicted_start_us >= end.predicted_us - kNanosecond_us &&
             bar.measured_start_us.value_or(end.measured_us) >= end.measured_us - kNanosecond_us;
    });
    const auto row = free - ends.begin();
    if (free == ends.end()) ends.emplace_back();
    Ends& end = ends[static_cast<size_t>(row)];
    end.predicted_us = std::max(end.predicted_us, bar.predicted_finish_us);
    end.measured_us = std::max(end.measured_us, bar.measured_finish_us.value_or(0));
    return static_cast<int>(row);
  }

  std::map<std::pair<std::string, int>, std::vector<Ends>> ends_;
  std::vector<int> row_;
};

}  // namespace

std::string timeline_trace_json(const TimelineView& view) {
  Json events = Json::array();
  bool measured = false;
  for (const auto& bar : view.bars) measured |= bar.measured_start_us.has_value();
  events.push_back(metadata("process_name", kPredicted, 0, "predicted"));
  if (measured) events.push_back(metadata("process_name", kMeasured, 0, "measured"));
  int most_parts = 1;
  for (const auto& bar : view.bars) most_parts = std::max(most_parts, bar.parts);
  const Threads threads(view);
  std::map<std::pair<std::string, int>, int> first;  // thread of a track's part
  int next = 0;
  for (const std::string& track : view.tracks) {
    int at_once = 0;
    for (int part = 0; part < most_parts; ++part) {
      first[{track, part}] = next + 1;
      for (size_t row = 0; row < threads.rows(track, part); ++row) {
        const int id = ++next;
        const std::string name = ++at_once == 1 ? track : track + ", at once " + std::to_string(at_once);
        for (const int pid : {kPredicted, kMeasured}) {
          if (pid == kMeasured && !measured) continue;
          events.push_back(metadata("thread_name", pid, id, name));
          events.push_back({{"ph", "M"},
                            {"name", "thread_sort_index"},
                            {"pid", pid},
                            {"tid", id},
                            {"args", {{"sort_index", id - 1}}}});
        }
      }
    }
  }
  for (size_t i = 0; i < view.bars.size(); ++i) {
    const auto& bar = view.bars[i];
    const int id = first[{bar.track, bar.part}] + threads.row(i);
    events.push_back(complete(bar, kPredicted, id, bar.predicted_start_us, bar.predicted_finish_us));
    if (bar.measured_start_us)
      events.push_back(complete(bar, kMeasured, id, *bar.measured_start_us, *bar.measured_finish_us));
  }
  Json root = {{"traceEvents", std::move(events)},
               {"displayTimeUnit", "ms"},
               {"otherData",
                {{"title", view.title},
                 {"objective", objective_name(view.objective)},
                 {"predicted_us", view.predicted_us},
                 {"bound_us", view.bound.us},
                 {"gap", view.gap}}}};
  if (view.measured_us) root["otherData"]["measured_us"] = *view.measured_us;
  return json_text(root, 1);
}

}  // namespace heddle
