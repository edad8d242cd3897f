// Chrome's trace event format, which Perfetto reads, too: complete events ("X") and names as metadata ("M").
#include <algorithm>
#include <map>
#include <set>

#include "heddle/base/json.h"
#include "heddle/report/timeline_view.h"

namespace heddle {
namespace {

constexpr int kPredicted = 1, kMeasured = 2;

Json metadata(const char* what, int pid, int tid, const std::string& name) {
  return {{"ph", "M"}, {"name", what}, {"pid", pid}, {"tid", tid}, {"args", {{"name", name}}}};
}

Json complete(const TimelineBar& bar, int pid, int tid, double start, double finish) {
  Json args = {{"critical", bar.critical}, {"step", bar.step.value}};
  for (const auto& [key, value] : bar.details) args[key] = value;
  return {{"ph", "X"},  {"name", bar.name}, {"cat", step_kind_name(bar.kind)}, {"pid", pid},
          {"tid", tid}, {"ts", start},      {"dur", finish - start},           {"args", std::move(args)}};
}

}  // namespace

std::string timeline_trace_json(const TimelineView& view) {
  Json events = Json::array();
  bool measured = false;
  for (const auto& bar : view.bars) measured |= bar.measured_start_us.has_value();
  events.push_back(metadata("process_name", kPredicted, 0, "predicted"));
  if (measured) events.push_back(metadata("process_name", kMeasured, 0, "measured"));
  // Members of a stage overlap, so each position in a stage has its own track.
  int most_parts = 1;
  for (const auto& bar : view.bars) most_parts = std::max(most_parts, bar.parts);
  std::map<std::pair<std::string, int>, int> tid;
  std::set<std::pair<std::string, int>> used;
  for (const auto& bar : view.bars) used.insert({bar.track, bar.part});
  int next = 0;
  for (const std::string& track : view.tracks) {
    for (int part = 0; part < most_parts; ++part) {
      if (part > 0 && !used.contains({track, part})) continue;
      const int id = tid[{track, part}] = ++next;
      const std::string name = part == 0 ? track : track + ", at once " + std::to_string(part + 1);
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
  for (const auto& bar : view.bars) {
    events.push_back(complete(bar, kPredicted, tid[{bar.track, bar.part}], bar.predicted_start_us,
                              bar.predicted_finish_us));
    if (bar.measured_start_us) {
      events.push_back(complete(bar, kMeasured, tid[{bar.track, bar.part}], *bar.measured_start_us,
                                *bar.measured_finish_us));
    }
  }
  Json root = {{"traceEvents", std::move(events)},
               {"displayTimeUnit", "ms"},
               {"otherData",
                {{"title", view.title},
                 {"objective", view.objective},
                 {"predicted_us", view.predicted_us},
                 {"bound_us", view.bound.us},
                 {"gap", view.gap}}}};
  if (view.measured_us) root["otherData"]["measured_us"] = *view.measured_us;
  return json_text(root, 1);
}

}  // namespace heddle
