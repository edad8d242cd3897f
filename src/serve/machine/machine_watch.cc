#include "machine_watch.h"

#include <fmt/format.h>

namespace heddle {

std::vector<std::string> MachineWatch::look(const WatchReading& reading) {
  std::vector<std::string> lines;
  if (before_ && reading.now_s > before_->now_s) {
    double others = 0;  // cores that other processes use
    if (reading.cores && before_->cores)
      others =
          ((reading.cores->all_s - before_->cores->all_s) - (reading.cores->own_s - before_->cores->own_s)) /
          (reading.now_s - before_->now_s);
    for (const auto& [model, now] : reading.models) {
      ModelRuns since = now;
      // A new plan counts from 0.
      if (const auto it = before_->models.find(model);
          it != before_->models.end() && it->second.runs <= now.runs) {
        since.runs -= it->second.runs;
        since.busy_s -= it->second.busy_s;
        since.predicted_s -= it->second.predicted_s;
      }
      if (since.runs < kLeastRuns || !(since.predicted_s > 0)) continue;
      const double ratio = since.busy_s / since.predicted_s;
      Cause cause = Cause::kNone;
      if (ratio > 1 + kShare) cause = others > kOtherWork ? Cause::kMachine : Cause::kMeasurement;
      if (ratio < 1 / (1 + kShare)) cause = Cause::kMeasurement;
      Cause& said = said_[model];
      if (cause == said) continue;
      said = cause;
      auto line = fmt::format("{}: a run takes {:.2f} times what was measured when the model was loaded",
                              model, ratio);
      if (cause == Cause::kMachine)
        line += fmt::format("; the machine: other processes use {:.1f} cores", others);
      else if (cause == Cause::kMeasurement)
        line += "; the measurement: other processes are not the cause, so load the model again";
      else
        line += ", as planned again";
      lines.push_back(std::move(line));
    }
  }
  before_ = reading;
  return lines;
}

}  // namespace heddle
