// Precision under a budget: which units may compute in narrower types, so that the model's outputs keep to it.
//
// Each unit is run in each narrower type inside the model in float32, and what that changes in the outputs is measured
// on samples. Units in order of error for time gained then get their types as long as the outputs of all of them
// together, measured again, keep to the budget. Planners see the result as times: a unit has none on devices of a
// type that it may not have. So every planner minimises its objective over placement and type at once, and its bound
// holds for these types. Afterwards the plan itself is measured (make_plan).
#include <algorithm>
#include <numeric>

#include "heddle/cluster/variants.h"
#include "heddle/runtime/executor.h"
#include "heddle/runtime/mixed_model.h"
#include "session_parts.h"

namespace heddle {
namespace {

// What a unit gains is at least this part of its time: units that gain nothing alone still spare casts between
// neighbours of one type.
constexpr double kLeastGain = 0.01;
// Units that may be tried one by one after the first ones that together are too much.
constexpr size_t kMostSingleTrials = 16;

// A narrower type, by the devices that have it.
struct NarrowType {
  Variant variant;
  Device device;  // with the most cores of those
  DeviceId id;
};

std::vector<NarrowType> narrow_types(const Problem& problem) {
  std::vector<NarrowType> types;
  for (const DeviceId id : problem.usable_devices()) {
    const Device& device = problem.cluster->device(id);
    if (device.precision == Precision::kF32) continue;
    const auto same = std::ranges::find(types, variant_of(device), &NarrowType::variant);
    if (same == types.end())
      types.push_back({variant_of(device), device, id});
    else if (same->device.cores.size() < device.cores.size())
      *same = {variant_of(device), device, id};
  }
  return types;
}

// A unit in a narrower type.
struct Item {
  size_t unit = 0, type = 0;  // of narrow_types()
  double gain_us = 0;
  OutputError error;  // of this item alone
};

// How much of the budget an error takes: above 1 it does not fit.
double weight(double agreement, double mean, const PrecisionChoice& budget) {
  const auto part = [](double of, double whole) { return of <= 0 ? 0 : whole > 0 ? of / whole : INFINITY; };
  return std::max(part(mean, budget.most_mean), part(1 - agreement, 1 - budget.least_agreement));
}
double weight(const OutputError& error, const PrecisionChoice& budget) {
  return weight(error.agreement(), error.mean(), budget);
}

class Chooser {
 public:
  Chooser(const Session& session, PrecisionChoice& choice, const Control& control)
      : session_(session),
        problem_(session.problem),
        choice_(choice),
        control_(control),
        types_(narrow_types(session.problem)),
        order_(problem_.graph->topological_order().begin(), problem_.graph->topological_order().end()) {}

  bool has_types() const { return !types_.empty(); }

  // Measures units only if the whole model in its narrowest types errs too much, or if `measure_all`.
  Status run(bool measure_all = false) {
    HEDDLE_RETURN_IF_ERROR(compile());
    make_items();
    // Most models keep to the budget as they are, and then no unit needs to be measured.
    std::vector<size_t> all(items_.size());
    std::iota(all.begin(), all.end(), 0);
    HEDDLE_ASSIGN_OR_RETURN(const OutputError whole, error_of(all));
    if (!measure_all && weight(whole, choice_) <= 1) {
      note(whole);
      return {};
    }
    HEDDLE_RETURN_IF_ERROR(measure_items());
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<size_t> chosen, choose());
    for (size_t i = 0; i < items_.size(); ++i) {
      const Item& item = items_[i];
      choice_.units.push_back({order_[item.unit], types_[item.type].variant.precision, item.error.agreement(),
                               item.error.mean(), std::ranges::find(chosen, i) != chosen.end()});
    }
    return {};
  }

 private:
  Status compile() {
    std::vector<std::vector<OpId>> pieces;
    for (const OpId unit : order_) pieces.push_back(finest_ops(*problem_.graph, {&unit, 1}));
    std::vector<Device> devices{as_variant(types_.front().device, {types_.front().variant.backend})};
    for (const NarrowType& type : types_) devices.push_back(type.device);
    HEDDLE_ASSIGN_OR_RETURN(mixed_, MixedModel::make(session_.loaded.model, pieces, devices, control_));
    return {};
  }

  // The time of the unit in float32 on the same hardware, or on that where it is least.
  double wide_us(OpId unit, DeviceId narrow) const {
    double least = kImpossible;
    for (const DeviceId id : problem_.cluster->variants(narrow)) {
      if (problem_.cluster->device(id).precision == Precision::kF32 && problem_.may_use(id))
        least = std::min(least, problem_.costs->us(unit, id));
    }
    return least;
  }

  void make_items() {
    for (size_t u = 0; u < order_.size(); ++u) {
      for (size_t t = 0; t < types_.size(); ++t) {
        const double narrow = problem_.costs->us(order_[u], types_[t].id),
                     wide = wide_us(order_[u], types_[t].id);
        if (!(narrow < kImpossible)) continue;
        items_.push_back({u, t, std::max(wide - narrow, kLeastGain * narrow), {}});
      }
    }
  }

  // With these items: every unit in the type of its item with the largest gain.
  std::vector<uint8_t> types_with(const std::vector<size_t>& items) const {
    std::vector<uint8_t> choice(order_.size(), 0);
    std::vector<double> gain(order_.size(), -1);
    for (const size_t i : items) {
      const Item& item = items_[i];
      if (item.gain_us <= gain[item.unit]) continue;
      gain[item.unit] = item.gain_us;
      choice[item.unit] = static_cast<uint8_t>(item.type + 1);
    }
    return choice;
  }

  Result<OutputError> error_of(const std::vector<size_t>& items) {
    const auto choice = types_with(items);
    OutputError error;
    for (size_t s = 0; s < session_.samples->inputs.size(); ++s) {
      HEDDLE_RETURN_IF_ERROR(mixed_->set_sample(session_.samples->inputs[s]));
      HEDDLE_RETURN_IF_ERROR(add(error, choice, s));
    }
    return error;
  }

  Status add(OutputError& error, const std::vector<uint8_t>& choice, size_t sample) {
    if (control_.cancel.cancelled()) return cancelled_error("stopped while measuring the types' error");
    HEDDLE_ASSIGN_OR_RETURN(const auto outputs, mixed_->run(choice));
    add_samples(error, output_error(*session_.loaded.graph, outputs, session_.samples->expected[sample],
                                    session_.decisions));
    return {};
  }

  // Each item alone.
  Status measure_items() {
    const size_t samples = session_.samples->inputs.size();
    for (size_t s = 0; s < samples; ++s) {
      HEDDLE_RETURN_IF_ERROR(mixed_->set_sample(session_.samples->inputs[s]));
      for (size_t i = 0; i < items_.size(); ++i) {
        HEDDLE_RETURN_IF_ERROR(add(items_[i].error, types_with({i}), s));
        control_.report("measuring the error of types", static_cast<double>(s * items_.size() + i + 1),
                        static_cast<double>(samples * items_.size()));
      }
    }
    return {};
  }

  // The items of the least error for the time that they gain come first. As many of them as keep to the budget
  // together, which halving finds because more items hardly ever err less; then others that still fit.
  Result<std::vector<size_t>> choose() {
    std::vector<size_t> order(items_.size());
    std::iota(order.begin(), order.end(), 0);
    std::vector<double> price;
    for (const Item& item : items_) price.push_back(weight(item.error, choice_) / item.gain_us);
    std::ranges::stable_sort(order, {}, [&](size_t i) { return price[i]; });
    std::vector<size_t> chosen;
    size_t fits = 0, too_many = order.size() + 1;
    while (too_many - fits > 1) {
      const size_t middle = (fits + too_many) / 2;
      std::vector<size_t> tried(order.begin(), order.begin() + static_cast<ptrdiff_t>(middle));
      HEDDLE_ASSIGN_OR_RETURN(const bool keeps, keeps_to_budget(tried));
      if (keeps) chosen = std::move(tried);
      (keeps ? fits : too_many) = middle;
    }
    for (size_t i = fits, trials = 0; i < order.size() && trials < kMostSingleTrials; ++i) {
      if (weight(items_[order[i]].error, choice_) > 1) continue;
      ++trials;
      std::vector<size_t> tried = chosen;
      tried.push_back(order[i]);
      HEDDLE_ASSIGN_OR_RETURN(const bool keeps, keeps_to_budget(tried));
      if (keeps) chosen = std::move(tried);
    }
    return chosen;
  }

  // Notes the error of the items if they keep to the budget.
  Result<bool> keeps_to_budget(const std::vector<size_t>& items) {
    HEDDLE_ASSIGN_OR_RETURN(const OutputError error, error_of(items));
    if (weight(error, choice_) > 1) return false;
    note(error);
    return true;
  }

  void note(const OutputError& error) {
    choice_.agreement = error.agreement();
    choice_.mean = error.mean();
    choice_.largest = error.largest();
  }

  const Session& session_;
  const Problem& problem_;
  PrecisionChoice& choice_;
  const Control& control_;
  std::vector<NarrowType> types_;
  std::vector<OpId> order_;  // of units
  std::unique_ptr<MixedModel> mixed_;
  std::vector<Item> items_;
};

// Has the unit a time on a device whose type it may have?
bool has_allowed(const Problem& problem, OpId unit) {
  const auto devices = problem.usable_devices();
  return std::ranges::any_of(devices, [&](DeviceId d) {
    return problem.costs->us(unit, d) < kImpossible &&
           !problem.precision->forbids(unit, problem.cluster->device(d).precision);
  });
}

}  // namespace

void forbid_types(Problem& problem) {
  if (!problem.precision || problem.precision->units.empty()) return;
  // A unit without another type keeps what it has; make_plan() finds out whether that is too much.
  std::vector<bool> may_be_forbidden;
  for (size_t u = 0; u < problem.graph->num_ops(); ++u)
    may_be_forbidden.push_back(has_allowed(problem, OpId(u)));
  problem.costs = std::make_shared<const CostTable>(problem.costs->without([&](OpId unit, DeviceId device) {
    return may_be_forbidden[unit.index()] &&
           problem.precision->forbids(unit, problem.cluster->device(device).precision);
  }));
}

Status choose_types(Session& session, const ProblemSettings& settings, const Control& control) {
  if (!settings.variants.budget) return {};
  const Model* model = session.loaded.model.get();
  if (model == nullptr || !session.may_measure)
    return invalid_input(
        "a budget needs a model and devices of this machine, on which errors can be measured");
  auto choice = std::make_shared<PrecisionChoice>();
  choice->least_agreement = settings.variants.budget->agreement;
  choice->most_mean = settings.variants.budget->mean;
  HEDDLE_RETURN_IF_ERROR(check_decisions(*model->graph(), settings.decisions));
  session.decisions = settings.decisions;
  HEDDLE_ASSIGN_OR_RETURN(auto inputs, calibration_inputs(*model, settings.calibration));
  HEDDLE_ASSIGN_OR_RETURN(auto samples, with_references(*model, std::move(inputs)));
  choice->samples = static_cast<int>(samples.inputs.size());
  session.samples = std::make_shared<const Samples>(std::move(samples));
  Chooser chooser(session, *choice, control);
  if (chooser.has_types()) HEDDLE_RETURN_IF_ERROR(chooser.run());
  session.problem.precision = std::move(choice);
  forbid_types(session.problem);
  return {};
}

namespace {

// The unit of the plan that errs most in its type, among those that may still have it; -1: none.
int worst_unit(const Problem& problem, const Plan& plan, const PrecisionChoice& choice) {
  int worst = -1;
  double most = -1;
  for (size_t i = 0; i < choice.units.size(); ++i) {
    const auto& unit = choice.units[i];
    if (!unit.allowed) continue;
    const bool used = std::ranges::any_of(plan.segments, [&](const Segment& s) {
      return problem.cluster->device(s.device).precision == unit.type &&
             std::binary_search(s.ops.begin(), s.ops.end(), unit.op);
    });
    const double w = weight(unit.agreement, unit.mean, choice);
    if (used && w > most) {
      worst = static_cast<int>(i);
      most = w;
    }
  }
  return worst;
}

}  // namespace

Status measure_error(Session& session, const Plan& plan, const Control& control) {
  auto choice = std::make_shared<PrecisionChoice>(*session.problem.precision);
  OutputError error;
  if (narrowest_type(session.problem, plan) != Precision::kF32) {
    ExecutorOptions options;
    options.deadline = control.deadline();
    HEDDLE_ASSIGN_OR_RETURN(const auto executor,
                            Executor::create(session.problem, plan, session.loaded.model, options));
    HEDDLE_ASSIGN_OR_RETURN(error, executor_error(*executor, *session.problem.graph, *session.samples,
                                                  session.decisions, options.deadline));
  }
  choice->agreement = error.agreement();
  choice->mean = error.mean();
  choice->largest = error.largest();
  session.problem.precision = std::move(choice);
  return {};
}

Result<bool> widen_worst(Session& session, const Plan& plan, int count, const Control& control) {
  auto choice = std::make_shared<PrecisionChoice>(*session.problem.precision);
  if (choice->units.empty()) {
    HEDDLE_RETURN_IF_ERROR(Chooser(session, *choice, control).run(/*measure_all=*/true));
  }
  bool any = false;
  for (int i = 0; i < count; ++i) {
    const int worst = worst_unit(session.problem, plan, *choice);
    if (worst < 0) break;
    auto& unit = choice->units[static_cast<size_t>(worst)];
    unit.allowed = false;
    session.problem.precision = choice;
    any = any || has_allowed(session.problem, unit.op);
  }
  session.problem.precision = std::move(choice);
  forbid_types(session.problem);
  return any;
}

}  // namespace heddle
