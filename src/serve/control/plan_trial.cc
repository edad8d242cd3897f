#include "plan_trial.h"

namespace heddle {

uint64_t PlanTrial::Interval::arrived() const {
  uint64_t sum = 0;
  for (const auto& [name, c] : models) sum += c.arrived;
  return sum;
}

PlanTrial::Interval PlanTrial::between(const Sample& from, const Sample& to) {
  Interval out;
  out.seconds = to.at_s - from.at_s;
  for (const auto& [name, c] : to.models) {
    const auto old = from.models.find(name);
    const Count was = old == from.models.end() ? Count() : old->second;
    out.models[name] = {c.arrived - was.arrived, c.in_time - was.in_time};
  }
  return out;
}

void PlanTrial::plan_began(double now_s, bool compare, double settle_s) {
  // Of a plan that had not settled itself there is nothing to hold the new one against.
  before_ = samples_.size() > 1 ? between(samples_.front(), samples_.back()) : Interval();
  samples_.clear();
  settled_s_ = now_s + settle_s;
  open_ = compare && options_.window_s > 0;
}

TrialResult PlanTrial::look(double now_s, std::span<const GoodputReading> models) {
  if (now_s < settled_s_) return {};
  Sample sample;
  sample.at_s = now_s;
  for (const auto& m : models) sample.models[m.model] = {m.arrived, m.in_time};
  samples_.push_back(std::move(sample));
  if (!open_) {
    while (samples_.size() > 2 && now_s - samples_[1].at_s >= options_.window_s) samples_.pop_front();
    return {};
  }
  // The whole trial counts, so its first sample stays; those between are not needed.
  if (samples_.size() > 2) samples_.erase(samples_.begin() + 1);
  const Interval now = between(samples_.front(), samples_.back());
  if (now.seconds < options_.window_s) return {};
  TrialResult out;
  if (before_.arrived() < options_.least_requests) {
    out.verdict = TrialResult::Verdict::kKept;
    out.why = "the plan before it had too few requests to compare with";
  } else if (now.arrived() < options_.least_requests) {
    if (now.seconds < options_.window_s * options_.longest) return {};
    out.verdict = TrialResult::Verdict::kKept;
    out.why = "too few requests came to tell";
  } else {
    out = compare(now);
  }
  out.requests = now.arrived();
  open_ = false;
  return out;
}

TrialResult PlanTrial::compare(const Interval& now) const {
  uint64_t arrived = 0, arrived_before = 0, in_time = 0;
  double in_time_as_before = 0;
  for (const auto& [name, after] : now.models) {
    const auto old = before_.models.find(name);
    if (after.arrived == 0 || old == before_.models.end() || old->second.arrived == 0) continue;
    arrived += after.arrived;
    arrived_before += old->second.arrived;
    in_time += after.in_time;
    in_time_as_before += static_cast<double>(after.arrived) * static_cast<double>(old->second.in_time) /
                         static_cast<double>(old->second.arrived);
  }
  TrialResult out;
  out.verdict = TrialResult::Verdict::kKept;
  if (arrived == 0) {
    out.why = "no model had requests before and after";
    return out;
  }
  out.before = in_time_as_before / static_cast<double>(arrived);
  out.after = static_cast<double>(in_time) / static_cast<double>(arrived);
  if (out.after >= out.before - options_.margin) {
    out.why = "it is no worse";
  } else if (static_cast<double>(arrived) / now.seconds >
             (1 + options_.growth) * static_cast<double>(arrived_before) / before_.seconds) {
    out.why = "more requests arrive than before";
  } else {
    out.verdict = TrialResult::Verdict::kWorse;
  }
  return out;
}

}  // namespace heddle
