// The choice of precisions under a budget, as plan files hold it.
#include <limits>

#include "problem_json.h"

namespace heddle {
namespace {

constexpr double kMostError = std::numeric_limits<double>::max();

// JSON has no infinity, and a type that makes outputs infinite is as wrong as one can be.
double finite(double error) { return std::min(error, kMostError); }

}  // namespace

Json precision_to_json(const PrecisionChoice& choice) {
  Json units = Json::array();
  for (const auto& u : choice.units)
    units.push_back({{"unit", u.op.value},
                     {"type", precision_name(u.type)},
                     {"agreement", u.agreement},
                     {"mean", finite(u.mean)},
                     {"allowed", u.allowed}});
  return {{"least_agreement", choice.least_agreement},
          {"most_mean", choice.most_mean},
          {"samples", choice.samples},
          {"agreement", choice.agreement},
          {"mean", finite(choice.mean)},
          {"largest", finite(choice.largest)},
          {"units", std::move(units)}};
}

Result<std::shared_ptr<const PrecisionChoice>> precision_from_json(const JsonCursor& cursor, size_t units) {
  auto choice = std::make_shared<PrecisionChoice>();
  const auto read_unit = [units](const JsonCursor& at) -> Result<PrecisionChoice::Unit> {
    PrecisionChoice::Unit u;
    Fields f(at);
    f.required("unit", u.op, units)
        .required("type", u.type, precision_from_name, "'f32', 'tf32', 'bf16' or 'fp16'")
        .required("agreement", u.agreement, 0, 1)
        .required("mean", u.mean, 0, kMostError)
        .required("allowed", u.allowed);
    HEDDLE_RETURN_IF_ERROR(f.finish());
    return u;
  };
  Fields f(cursor);
  f.required("least_agreement", choice->least_agreement, 0, 1)
      .required("most_mean", choice->most_mean, 0, kMostError)
      .required("samples", choice->samples, 0)
      .required("agreement", choice->agreement, 0, 1)
      .required("mean", choice->mean, 0, kMostError)
      .required("largest", choice->largest, 0, kMostError)
      .required("units", each_into(choice->units, read_unit));
  HEDDLE_RETURN_IF_ERROR(f.finish());
  return std::shared_ptr<const PrecisionChoice>(std::move(choice));
}

}  // namespace heddle
