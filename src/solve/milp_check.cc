// Independent checks of models and solutions: plain sums over the model's own rows.
#include "milp_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "heddle/base/spelling.h"

namespace heddle {
namespace {

std::string number(double value) { return fmt::format("{:.12g}", value); }

std::string variable_name(const Milp& model, size_t i) {
  return "variable " + quote_text(model.name({static_cast<int32_t>(i)}));
}

Error wrong(const std::string& place, const std::string& what) {
  return invalid_input(what).with_context(place);
}

Status check_range(const std::string& place, double lower, double upper) {
  if (std::isnan(lower) || std::isnan(upper)) return wrong(place, "a bound is not a number");
  if (lower > upper) {
    return wrong(place, "the lower bound " + number(lower) + " is above the upper bound " + number(upper));
  }
  if (lower == kNoBound || upper == -kNoBound) return wrong(place, "no number lies within the bounds");
  return {};
}

Status check_row(const std::string& place, const Milp::Row& row) {
  HEDDLE_RETURN_IF_ERROR(check_range(place, row.lower, row.upper));
  for (const Term& term : row.terms) {
    if (!std::isfinite(term.coefficient)) return wrong(place, "a coefficient is not a finite number");
  }
  return {};
}

constexpr double kMilpTolerance = 1e-6;

// Collects the largest violation.
struct WorstViolation {
  double by = 0;
  std::string text;

  void range(double lower, double value, double upper, double scale, const std::string& place) {
    const double off = std::max(lower - value, value - upper) / std::max(1.0, scale);
    if (!std::isnan(value) && (off <= kMilpTolerance || off <= by)) return;
    by = std::isnan(value) ? kNoBound : off;
    text = place + " is " + number(value) + ", not within [" + number(lower) + ", " + number(upper) + "]";
  }
  void row(const Milp::Row& row, std::span<const double> values, const auto& place) {
    double sum = 0, scale = 0;
    for (const Term& term : row.terms) {
      const double product = term.coefficient * values[static_cast<size_t>(term.var.index)];
      sum += product;
      scale = std::max(scale, std::fabs(product));
    }
    // Build the name only for violated rows: most rows hold.
    const double slack = kMilpTolerance * std::max(1.0, scale);
    if (sum >= row.lower - slack && sum <= row.upper + slack) return;
    range(row.lower, sum, row.upper, scale, place());
  }
};

}  // namespace

std::string row_name(const Milp& model, size_t row) {
  const std::string& name = model.rows()[row].name;
  return "row " + (name.empty() ? std::to_string(row) : quote_text(name));
}

std::string indicator_name(const Milp& model, size_t indicator) {
  const std::string& name = model.indicators()[indicator].row.name;
  return "indicator " + (name.empty() ? std::to_string(indicator) : quote_text(name));
}

Status check_model(const Milp& model) {
  if (!model.wrong_use().empty()) return invalid_input(model.wrong_use());
  if (!std::isfinite(model.constant())) {
    return wrong("objective", "the constant is not a finite number");
  }
  for (size_t i = 0; i < model.variables().size(); ++i) {
    const auto& v = model.variables()[i];
    HEDDLE_RETURN_IF_ERROR(check_range(variable_name(model, i), v.lower, v.upper));
    if (!std::isfinite(v.cost)) return wrong(variable_name(model, i), "the cost is not a finite number");
    if (v.kind == VarKind::kBinary && (v.lower < 0 || v.upper > 1)) {
      return wrong(variable_name(model, i), "a binary's bounds are within 0 and 1, not " + number(v.lower) +
                                                " and " + number(v.upper));
    }
  }
  for (size_t i = 0; i < model.rows().size(); ++i) {
    HEDDLE_RETURN_IF_ERROR(check_row(row_name(model, i), model.rows()[i]));
  }
  for (size_t i = 0; i < model.indicators().size(); ++i) {
    const auto& indicator = model.indicators()[i];
    HEDDLE_RETURN_IF_ERROR(check_row(indicator_name(model, i), indicator.row));
    const auto index = static_cast<size_t>(indicator.binary.index);
    if (model.variables()[index].kind != VarKind::kBinary) {
      return wrong(indicator_name(model, i), variable_name(model, index) + " is not a binary");
    }
  }
  for (const auto& [var, value] : model.start()) {
    if (std::isfinite(value)) continue;
    return wrong(variable_name(model, static_cast<size_t>(var.index)),
                 "the start value is not a finite number");
  }
  return {};
}

std::string violation(const Milp& model, std::span<const double> values) {
  const size_t n = model.variables().size();
  if (values.size() != n) {
    return "there are " + std::to_string(values.size()) + " values for " + std::to_string(n) + " variables";
  }
  WorstViolation worst;
  for (size_t i = 0; i < n; ++i) {
    const auto& v = model.variables()[i];
    const double x = values[i];
    if (!std::isfinite(x)) return variable_name(model, i) + " is not a finite number";
    if (x < v.lower - kMilpTolerance || x > v.upper + kMilpTolerance) {
      worst.range(v.lower, x, v.upper, std::fabs(x), variable_name(model, i));
    }
    if (v.kind == VarKind::kContinuous) continue;
    const double off = std::fabs(x - std::round(x));
    if (off <= kMilpTolerance || off <= worst.by) continue;
    worst.by = off;
    worst.text = variable_name(model, i) + " is " + number(x) + ", not an integer";
  }
  for (size_t i = 0; i < model.rows().size(); ++i) {
    worst.row(model.rows()[i], values, [&] { return row_name(model, i); });
  }
  for (size_t i = 0; i < model.indicators().size(); ++i) {
    const auto& indicator = model.indicators()[i];
    const bool on = values[static_cast<size_t>(indicator.binary.index)] > 0.5;
    if (on == indicator.value) worst.row(indicator.row, values, [&] { return indicator_name(model, i); });
  }
  return worst.text;
}

}  // namespace heddle
