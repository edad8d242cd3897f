#include "heddle/runtime/plan_switch.h"

#include <algorithm>

#include "heddle/base/quantiles.h"

namespace heddle {

PlanSwitch::PlanSwitch(size_t plans, const PlanSwitchOptions& options)
    : options_(options), recent_(std::max<size_t>(plans, 1)) {}

bool PlanSwitch::is_known(size_t plan) const {
  return recent_[plan].size() >= static_cast<size_t>(options_.samples);
}

double PlanSwitch::recent_us(size_t plan) const {
  return median_us(std::vector<double>(recent_[plan].begin(), recent_[plan].end()));
}

void PlanSwitch::choose_first() {
  for (size_t plan = 0; plan < recent_.size(); ++plan) {
    next_ = plan;
    if (!is_known(plan)) return;
  }
  begun_ = true;
  for (size_t plan = 0; plan < recent_.size(); ++plan)
    if (recent_us(plan) < recent_us(active_)) active_ = plan;
  next_ = last_tried_ = active_;
}

void PlanSwitch::took(double us) {
  auto& times = recent_[next_];
  times.push_back(us);
  if (times.size() > static_cast<size_t>(options_.samples)) times.pop_front();
  if (!begun_) return choose_first();
  if (next_ != active_) {
    if (is_faster(us) && ++fast_tries_ < options_.samples) return;
    // A slow try among them ends the trial: a plan must be faster again and again.
    if (is_faster(us) && is_faster(recent_us(next_))) {
      active_ = next_;
      ++switches_;
    }
    fast_tries_ = since_probe_ = 0;
    next_ = active_;
    return;
  }
  if (recent_.size() == 1 || ++since_probe_ < options_.probe_every) return;
  do last_tried_ = (last_tried_ + 1) % recent_.size();
  while (last_tried_ == active_);
  next_ = last_tried_;
}

}  // namespace heddle
