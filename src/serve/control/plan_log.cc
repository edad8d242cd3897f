#include "plan_log.h"

#include <fmt/format.h>

#include <algorithm>

#include "heddle/base/utc.h"
#include "protocol/metrics_text.h"

namespace heddle {
namespace {

constexpr size_t kMostEntries = 50;
constexpr size_t kMostNamed = 3;  // of drifts in one line
constexpr const char* kNames[kPlanEvents] = {"asked", "drift", "kept", "rolled back", "refused"};

}  // namespace

void PlanLog::add(PlanEvent event, const std::string& text, const Json& details) {
  const auto kind = static_cast<size_t>(event);
  Json entry = {{"at", utc_now()}, {"what", kNames[kind]}, {"text", text}};
  entry.update(details);
  {
    const std::lock_guard lock(mutex_);
    ++counts_[kind];
    entries_.push_back(std::move(entry));
    if (entries_.size() > kMostEntries) entries_.pop_front();
  }
  const bool warns = event == PlanEvent::kRolledBack || event == PlanEvent::kRefused;
  if (print_) print_(warns ? LogLevel::kWarning : LogLevel::kInfo, std::string(kNames[kind]) + ": " + text);
}

void PlanLog::continue_from(const Json& entries) {
  const std::lock_guard lock(mutex_);
  for (const auto& entry : entries)
    if (entry.is_object() && entries_.size() < kMostEntries) entries_.push_back(entry);
}

Json PlanLog::entries() const {
  Json out = Json::array();
  const std::lock_guard lock(mutex_);
  for (const auto& entry : entries_) out.push_back(entry);
  return out;
}

uint64_t PlanLog::count(PlanEvent event) const {
  const std::lock_guard lock(mutex_);
  return counts_[static_cast<size_t>(event)];
}

std::string PlanLog::metrics(std::span<const PoolRatio> ratios) const {
  Metrics out;
  out.family("heddle_plan_events_total", "counter",
             "Changes of the plan and decisions on them: asked for, for measured drift, kept or rolled back "
             "after a trial, refused.");
  for (size_t e = 0; e < kPlanEvents; ++e) {
    std::string name = kNames[e];
    std::replace(name.begin(), name.end(), ' ', '_');
    out.value("heddle_plan_events_total", "event=\"" + name + "\"",
              static_cast<double>(count(static_cast<PlanEvent>(e))));
  }
  if (!ratios.empty())
    out.family("heddle_pool_time_ratio", "gauge",
               "Measured over planned time of a pool's last runs, where drift is watched.");
  for (const auto& r : ratios)
    out.value("heddle_pool_time_ratio",
              model_label(r.role.model) + ",class=\"" + metric_label(r.role.device_class) + "\",share=\"" +
                  std::to_string(r.role.share) + "\",blocks=\"" + std::to_string(r.role.block_from) + ".." +
                  std::to_string(r.role.block_to - 1) + "\"",
              r.ratio);
  return out.take();
}

Json to_json(std::span<const PoolRatio> ratios) {
  Json out = Json::array();
  for (const auto& r : ratios)
    out.push_back({{"model", r.role.model},
                   {"class", r.role.device_class},
                   {"share", r.role.share},
                   {"blocks", {r.role.block_from, r.role.block_to}},
                   {"ratio", r.ratio},
                   {"runs", r.runs}});
  return out;
}

std::string drift_text(std::span<const Drift> drifts) {
  std::string text;
  for (size_t i = 0; i < std::min(drifts.size(), kMostNamed); ++i) {
    text += (i > 0 ? ", " : "") + place_text(drifts[i].times) +
            fmt::format(" takes {:.3g} times its planned time ({} runs)", drifts[i].ratio, drifts[i].runs);
  }
  if (drifts.size() > kMostNamed)
    text += " and " + std::to_string(drifts.size() - kMostNamed) + " more have drifted";
  return text;
}

Json to_json(std::span<const Drift> drifts) {
  Json out = Json::array();
  for (const auto& d : drifts)
    out.push_back({{"model", d.times.model},
                   {"class", d.times.device_class},
                   {"share", d.times.share},
                   {"ratio", d.ratio},
                   {"runs", d.runs}});
  return out;
}

}  // namespace heddle
