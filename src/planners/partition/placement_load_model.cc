// Tarnawski et al. 2020, section 5.2, the integer programme for max-load without contiguity, over units and
// nets:
//   min L
//   sum_d x[u,d] = 1                              each unit on one device
//   sum_u bytes[u] x[u,d] <= M                    accelerators
//   p[e,d] >= x[u,d] - x[v,d]                     net e is on d and elsewhere: d pays (pins in a ring)
//   sum_u time[u] x[u,d] + sum_e cost[e] p[e,d] <= L     accelerators; CPUs without the second sum
// Their formulation has two communication variables (in and out) for each node and device; over nets one is
// enough. Devices of a kind are alike: the first unit that needs one breaks the symmetry by CP-SAT itself.
#include "placement_load_model.h"

#include <cmath>

#include "search/schedule_model.h"

namespace heddle {
namespace {

class MaxLoadModel {
 public:
  MaxLoadModel(const PlacementUnits& units, const std::vector<int32_t>& hint, double hint_value)
      : units_(units), devices_(units.devices()), m_(units.size(), at(devices_), INT64_MAX / 4) {
    // Some 2^30 steps up to the hint's value: rounding down loses less than a part in 10^6, and sums stay
    // far from overflow.
    scale_ = std::exp2(std::floor(30 - std::log2(std::max(hint_value, 1e-300))));
    const auto steps = static_cast<int64_t>(std::ceil(hint_value * scale_));
    const auto largest = m_.cp.add_integer(0, steps, "L");
    for (size_t u = 0; u < units.size(); ++u) {
      for (int32_t d = 0; d < devices_; ++d) {
        if (units.allowed(static_cast<int32_t>(u), d)) m_.may_run(u, at(d), hint[u] == d);
      }
      m_.choose_device(u);
    }
    for (int32_t d = 0; d < devices_; ++d) add_device(d, hint, largest);
    m_.cp.hint(largest, steps);
    m_.cp.minimise(CpExpr(largest));
  }

  const CpModel& model() const { return m_.cp; }
  double scale() const { return scale_; }

  std::vector<int32_t> devices(std::span<const double> values) const {
    std::vector<int32_t> device(units_.size(), 0);
    for (size_t u = 0; u < units_.size(); ++u) device[u] = static_cast<int32_t>(m_.device(u, values));
    return device;
  }

 private:
  CpLit x(size_t unit, int32_t device) const { return m_.on(unit, at(device)); }
  int64_t steps(double time) const { return static_cast<int64_t>(std::floor(time * scale_)); }

  void add_device(int32_t d, const std::vector<int32_t>& hint, CpVar largest) {
    CpExpr load;
    for (size_t u = 0; u < units_.size(); ++u) {
      const auto time = steps(units_.time(static_cast<int32_t>(u), d));
      if (time > 0) load.add(x(u, d), time);
    }
    if (!units_.is_cpu(d)) {
      for (const auto& net : units_.nets) {
        const auto cost = steps(net.cost);
        if (cost == 0) continue;
        const auto pays = m_.cp.add_literal();
        bool on = false, off = false;
        for (size_t i = 0; i < net.pins.size(); ++i) {
          const auto here = at(net.pins[i]), next = at(net.pins[(i + 1) % net.pins.size()]);
          const CpLit clause[] = {!x(here, d), x(next, d), pays};
          m_.cp.any_of(clause);
          (hint[here] == d ? on : off) = true;
        }
        m_.hint(pays, on && off);
        load.add(pays, cost);
      }
      const auto bytes = [&](size_t unit, size_t device) {
        return device == at(d) ? static_cast<int64_t>(std::floor(units_.bytes[unit])) : 0;
      };
      m_.limit_memory(bytes, units_.memory_limit());
    }
    m_.after(largest, load, 0);
  }

  const PlacementUnits& units_;
  int32_t devices_;
  ScheduleModel m_;
  double scale_ = 1;
};

}  // namespace

Status solve_load_model(const PlacementUnits& units, const std::vector<int32_t>& hint, double hint_value,
                        SolveOptions options, const LoadModelCallbacks& callbacks) {
  const MaxLoadModel model(units, hint, hint_value);
  return solve_split_model(
      model.model(), model.scale(), [&](auto values) { return model.devices(values); }, std::move(options),
      callbacks);
}

Status solve_split_model(const CpModel& model, double scale,
                         const std::function<std::vector<int32_t>(std::span<const double>)>& decode,
                         SolveOptions options, const LoadModelCallbacks& callbacks) {
  options.on_progress = [&](const SolveProgress& progress) {
    if (!progress.values.empty()) callbacks.split(decode(progress.values));
    if (std::isfinite(progress.bound)) callbacks.bound(progress.bound / scale);
  };
  HEDDLE_ASSIGN_OR_RETURN(const auto solution, solve(model, options));
  if (solution.status == SolveStatus::kInfeasible)
    return Error(Code::kInternal, "CP-SAT finds no split as good as the one it was given");
  if (solution.has_values()) callbacks.split(decode(solution.values));
  if (std::isfinite(solution.bound)) callbacks.bound(solution.bound / scale);
  return {};
}

}  // namespace heddle
