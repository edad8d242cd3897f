#include "heddle/fleet/fleet_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

#include "heddle/base/gap.h"
#include "kept_instance.h"

namespace heddle {
namespace {

constexpr double kTolerance = 1e-9;  // relative, between claimed and recomputed numbers
constexpr double kSlack_us = 1e-5;   // of deadlines, for rounding of sums
constexpr double kSecond_us = 1e6;

std::string number(double v) { return fmt::format("{:.12g}", v); }

bool agree(double a, double b) {
  return std::abs(a - b) <= kTolerance * std::max({1.0, std::abs(a), std::abs(b)});
}

class Check {
 public:
  Check(const Fleet& fleet, const FleetPlan& plan) : fleet_(fleet), plan_(plan) {}

  std::vector<std::string> run() {
    if (plan_.models.size() != fleet_.models.size()) {
      say("the plan has " + std::to_string(plan_.models.size()) + " models, the fleet " +
          std::to_string(fleet_.models.size()));
      return problems_;
    }
    for (size_t m = 0; m < plan_.models.size(); ++m) model(m);
    if (!problems_.empty()) return problems_;
    devices();
    value();
    return problems_;
  }

 private:
  void say(std::string text) { problems_.push_back(std::move(text)); }

  void model(size_t m) {
    double sum = 0;
    const auto& pipelines = plan_.models[m].pipelines;
    for (size_t p = 0; p < pipelines.size(); ++p) {
      const auto where = "model '" + fleet_.models[m].name + "', pipeline " + std::to_string(p);
      const double rate = pipeline(m, pipelines[p], where);
      if (std::isnan(rate)) return;
      if (!agree(rate, pipelines[p].rate_per_s))
        say(where + ": claims " + number(pipelines[p].rate_per_s) + " /s, its pools sustain " + number(rate));
      sum += rate;
    }
    if (!agree(sum, plan_.models[m].rate_per_s))
      say("model '" + fleet_.models[m].name + "': claims " + number(plan_.models[m].rate_per_s) +
          " /s, its pipelines sustain " + number(sum));
    rates_.push_back(sum);
  }

  // Checks the pipeline; returns its rate, or NaN if the pipeline is malformed.
  double pipeline(size_t m, const FleetPipeline& p, const std::string& where) {
    const auto& model = fleet_.models[m];
    const auto parts = p.partitions.size();
    if (parts < 1 || parts > static_cast<size_t>(fleet_.max_partitions)) {
      say(where + ": has " + std::to_string(parts) + " partitions; the fleet allows 1 to " +
          std::to_string(fleet_.max_partitions));
      return NAN;
    }
    double latency = plan_.models[m].margin_us.value_or(model.margin_us), slowest = INFINITY;
    if (model.estimated_rate_per_s > 0)
      latency += fleet_.batch_delay_factor * (p.batch - 1) / model.estimated_rate_per_s * kSecond_us;
    for (size_t k = 0; k < parts; ++k) {
      const auto& q = p.partitions[k];
      const auto at = where + ", partition " + std::to_string(k);
      const int begins = k == 0 ? 0 : p.partitions[k - 1].block_to;
      if (q.block_from != begins || q.block_to <= q.block_from || q.block_to > model.blocks ||
          (k + 1 == parts && q.block_to != model.blocks)) {
        say(at + ": its blocks " + std::to_string(q.block_from) + ".." + std::to_string(q.block_to) +
            " do not continue the chain of 0.." + std::to_string(model.blocks));
        return NAN;
      }
      if (q.device_class < 0 || static_cast<size_t>(q.device_class) >= fleet_.classes.size()) {
        say(at + ": there is no class " + std::to_string(q.device_class));
        return NAN;
      }
      const auto& dc = fleet_.classes[static_cast<size_t>(q.device_class)];
      if (q.share < 1 || q.share > dc.share_levels) {
        say(at + ": class '" + dc.name + "' has no share 1/" + std::to_string(q.share));
        return NAN;
      }
      if (q.count < 1 || q.count > kMaxFleetDevices * kMaxShare) {
        say(at + ": a pool of " + std::to_string(q.count) + " virtual devices");
        return NAN;
      }
      double infer = 0, bytes = 0;
      for (int b = q.block_from; b < q.block_to; ++b) {
        const auto& of_class = model.latency_us[static_cast<size_t>(q.device_class)];
        const auto share = static_cast<size_t>(q.share) - 1, batch = static_cast<size_t>(p.batch) - 1;
        if (share >= of_class.size() || batch >= of_class[share].size()) {
          say(at + ": there is no time at class '" + dc.name + "', share 1/" + std::to_string(q.share) +
              ", batch " + std::to_string(p.batch));
          return NAN;
        }
        infer += of_class[share][batch][static_cast<size_t>(b)];
        if (!model.parameter_bytes.empty())
          bytes += static_cast<double>(model.parameter_bytes[static_cast<size_t>(b)]);
      }
      if (dc.memory_bytes > 0 && bytes * q.share > static_cast<double>(dc.memory_bytes))
        say(at + ": needs " + number(bytes) + " bytes of parameters; 1/" + std::to_string(q.share) +
            " of class '" + dc.name + "' has " + number(static_cast<double>(dc.memory_bytes) / q.share));
      latency += infer;
      double each = p.batch / infer * kSecond_us;
      const double sharers = static_cast<double>(q.share) * dc.devices_per_server;
      if (q.block_from > 0) each = std::min(each, through(model, q.block_from, dc, sharers));
      if (q.block_to < model.blocks) {
        each = std::min(each, through(model, q.block_to, dc, sharers));
        const int next = p.partitions[k + 1].device_class;
        if (next >= 0 && static_cast<size_t>(next) < fleet_.classes.size()) {
          const double nic =
              std::min(dc.nic_bytes_per_s, fleet_.classes[static_cast<size_t>(next)].nic_bytes_per_s);
          latency += p.batch * (model.cut_bytes[static_cast<size_t>(q.block_to)] / nic) * kSecond_us;
        }
      }
      slowest = std::min(slowest, each * static_cast<double>(q.count));
      pools_[{m, k, q.device_class}][static_cast<size_t>(q.share)] += q.count;
    }
    if (latency > model.slo_us + kSlack_us)
      say(where + ": a request takes up to " + number(latency) + " us with the margin; the SLO is " +
          number(model.slo_us) + " us");
    return slowest;
  }

  static double through(const FleetModel& model, int cut, const DeviceClass& dc, double sharers) {
    const double bytes = model.cut_bytes[static_cast<size_t>(cut)];
    return bytes > 0 ? dc.nic_bytes_per_s / sharers / bytes : INFINITY;
  }

  void devices() {
    used_.assign(fleet_.classes.size(), 0);
    for (const auto& [key, counts] : pools_) {
      // The smallest integer g >= sum of count / share, in integers: 12 / share is one.
      int64_t twelfths = 0;
      for (size_t share = 1; share < counts.size(); ++share)
        twelfths += counts[share] * (12 / static_cast<int64_t>(share));
      used_[static_cast<size_t>(std::get<2>(key))] += twelfths / 12 + (twelfths % 12 != 0);
    }
    for (size_t c = 0; c < used_.size(); ++c)
      if (used_[c] > fleet_.classes[c].count)
        say("class '" + fleet_.classes[c].name + "': the plan uses " + std::to_string(used_[c]) +
            " devices of " + std::to_string(fleet_.classes[c].count));
  }

  void value() {
    const bool more =
        plan_.objective == FleetObjective::kMaxMin || plan_.objective == FleetObjective::kGoodput;
    double weights = 0, value = plan_.objective == FleetObjective::kMaxMin ? INFINITY : 0;
    for (const auto& m : fleet_.models) weights += m.weight;
    for (size_t m = 0; m < rates_.size(); ++m) {
      const double load = plan_.load_per_s * fleet_.models[m].weight / weights;
      if (plan_.objective == FleetObjective::kMaxMin)
        value = std::min(value, rates_[m] / fleet_.models[m].weight);
      if (plan_.objective == FleetObjective::kGoodput) value += std::min(rates_[m], load);
      if (!more && rates_[m] < load * (1 - kTolerance))
        say("model '" + fleet_.models[m].name + "': serves " + number(rates_[m]) + " /s of its load of " +
            number(load));
    }
    for (size_t c = 0; c < used_.size(); ++c) {
      const double each = plan_.objective == FleetObjective::kCost    ? fleet_.classes[c].cost_per_hour
                          : plan_.objective == FleetObjective::kPower ? fleet_.classes[c].watts
                                                                      : 0;
      value += static_cast<double>(used_[c]) * each;
    }
    if (!agree(value, plan_.value))
      say("the plan claims the value " + number(plan_.value) + "; it is " + number(value));
    const double beyond = more ? value - plan_.bound : plan_.bound - value;
    if (!plan_.proof.reason.empty() && beyond > kTolerance * std::max(1.0, std::abs(value)))
      say("the value " + number(value) + " is beyond the bound " + number(plan_.bound) +
          ", which so is no bound");
  }

  const Fleet& fleet_;
  const FleetPlan& plan_;
  std::vector<std::string> problems_;
  std::vector<double> rates_;
  std::vector<int64_t> used_;
  // [(model, position, class)][share]: virtual devices.
  std::map<std::tuple<size_t, size_t, int>, std::array<int64_t, kMaxShare + 1>> pools_;
};

}  // namespace

std::vector<std::string> fleet_plan_problems(const Fleet& fleet, const FleetPlan& plan) {
  return Check(fleet, plan).run();
}

Status check_fleet_plan(const Fleet& fleet, const FleetPlan& plan) {
  const auto problems = fleet_plan_problems(fleet, plan);
  if (problems.empty()) return {};
  std::string text;
  for (size_t i = 0; i < problems.size() && i < 5; ++i) text += (i > 0 ? "; " : "") + problems[i];
  if (problems.size() > 5) text += "; and " + std::to_string(problems.size() - 5) + " more";
  return Error(Code::kVerificationFailed, "the plan does not hold: " + text);
}

Status check_planned(const Fleet& fleet, const FleetPlan& plan) {
  const auto problems = fleet_plan_problems(fleet, plan);
  if (problems.empty()) return {};
  const std::string what = "planner " + plan.planner + " made a plan that does not hold: " + problems.front();
  FleetPlan without = plan;
  without.proof = {};
  if (!fleet_plan_problems(fleet, without).empty()) return internal_error(what);
  return internal_error(what + " (" + plan.proof.text() + "); one of the two is wrong; " +
                        keep_instance(fleet, &plan, ""));
}

Status hold_against(const Fleet& fleet, FleetPlan& plan, double bound, const Proof& proof) {
  plan.bound = bound;
  plan.proof = proof;
  if (std::abs(bound - plan.value) <= kSolverTolerance * std::abs(plan.value)) plan.bound = plan.value;
  return check_planned(fleet, plan);
}

}  // namespace heddle
