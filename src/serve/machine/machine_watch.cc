#include "machine_watch.h"

#include <fmt/format.h>

#include <utility>

namespace heddle {
namespace {

// Cores that other processes use.
double others_between(const WatchReading& before, const WatchReading& now) {
  if (!now.cores || !before.cores) return 0;
  const double all_s = now.cores->all_s - before.cores->all_s, own_s = now.cores->own_s - before.cores->own_s;
  return (all_s - own_s) / (now.now_s - before.now_s);
}

// A new plan counts from 0.
ModelRuns runs_since(const WatchReading& before, const std::string& model, ModelRuns now) {
  const auto it = before.models.find(model);
  if (it == before.models.end() || it->second.runs > now.runs) return now;
  return {now.runs - it->second.runs, now.busy_s - it->second.busy_s,
          now.predicted_s - it->second.predicted_s};
}

}  // namespace

std::vector<std::string> MachineWatch::look(const WatchReading& reading) {
  const auto before = std::exchange(before_, reading);
  if (!before || !(reading.now_s > before->now_s)) return {};
  const double others = others_between(*before, reading);
  std::vector<std::string> lines;
  for (const auto& [model, runs] : reading.models) {
    const ModelRuns since = runs_since(*before, model, runs);
    if (since.runs < kLeastRuns || !(since.predicted_s > 0)) continue;
    const double ratio = since.busy_s / since.predicted_s;
    Cause cause = Cause::kNone;
    if (ratio > 1 + kShare) cause = others > kOtherWork ? Cause::kMachine : Cause::kMeasurement;
    if (ratio < 1 / (1 + kShare)) cause = Cause::kMeasurement;
    if (std::exchange(said_[model], cause) == cause) continue;
    auto line =
        fmt::format("{}: a run takes {:.2f} times what was measured when the model was loaded", model, ratio);
    if (cause == Cause::kMachine)
      line += fmt::format("; the machine: other processes use {:.1f} cores", others);
    else if (cause == Cause::kMeasurement)
      line += "; the measurement: other processes are not the cause, so load the model again";
    else
      line += ", as planned again";
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace heddle
