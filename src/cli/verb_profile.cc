// heddle profile: measure a model's units and whole on this machine's devices into the profile store.
#include <cstdio>

#include "heddle/base/json.h"
#include "heddle/base/units.h"
#include "heddle/report/text_table.h"
#include "verbs.h"
#include "workbench.h"

namespace heddle::cli {
namespace {

struct ProfileVerbOptions {
  ModelFlags model;
  ProblemFlags problem;
};

Result<int> run_profile(ProfileVerbOptions o, const Invocation& invocation) {
  // Everything is measured here, so that the summary counts it.
  o.problem.no_profile = false;
  HEDDLE_ASSIGN_OR_RETURN(auto bench, make_workbench(o.model, o.problem, invocation));
  if (!bench.may_measure) {
    return Error(Code::kInvalidInput,
                 o.model.model + " on " + o.problem.cluster +
                     ": nothing can be measured; profile needs a real model and a device of this machine "
                     "(--cluster preset:local)");
  }
  std::vector<OpId> all;
  for (size_t u = 0; u < bench.problem.graph->num_ops(); ++u) all.emplace_back(u);
  const auto& sum = bench.profiled;
  if (invocation.progress) invocation.progress->finish();
  const auto& p = bench.problem;
  if (invocation.json) {
    Json units = Json::array();
    for (size_t u = 0; u < p.graph->num_ops(); ++u) {
      Json row = {{"unit", p.graph->op(OpId(u)).name}};
      for (const auto device : p.usable_devices()) {
        const auto cost = p.costs->at(OpId(u), device);
        row[p.cluster->device(device).name] = {
            {"us", cost.us}, {"origin", origin_name(cost.origin)}, {"spread", cost.rel_spread}};
      }
      units.push_back(row);
    }
    const Json j = {{"model", bench.loaded.name}, {"store", bench.store->path()},
                    {"requested", sum.requested}, {"measured", sum.measured},
                    {"present", sum.present},     {"failed", sum.failed},
                    {"complete", sum.complete},   {"units", units}};
    std::printf("%s\n", j.dump(1, ' ', false, Json::error_handler_t::replace).c_str());
    return kExitDone;
  }
  std::vector<TextTable::Column> columns = {{"unit"}};
  for (const auto device : p.usable_devices())
    columns.push_back({p.cluster->device(device).name, TextTable::Align::kRight});
  TextTable table(columns);
  for (size_t u = 0; u < p.graph->num_ops(); ++u) {
    std::vector<std::string> row = {p.graph->op(OpId(u)).name};
    for (const auto device : p.usable_devices()) {
      const auto cost = p.costs->at(OpId(u), device);
      row.push_back(format_us(cost.us) +
                    (cost.origin == Origin::kMeasured ? "" : std::string(" ") + origin_name(cost.origin)));
    }
    table.add_row(row);
  }
  table.add_rule();
  std::vector<std::string> row = {"whole model as one segment"};
  for (const auto device : p.usable_devices()) row.push_back(format_us(p.costs->segment(all, device).us));
  table.add_row(row);
  std::printf("%s\n%d measured now, %d were there, %d failed; in %s\n", table.to_string().c_str(),
              sum.measured, sum.present, sum.failed, bench.store->path().c_str());
  if (!sum.first_failure.empty()) std::printf("first failure: %s\n", sum.first_failure.c_str());
  if (!sum.complete)
    std::printf("stopped early; what was measured is kept, the same command goes on from there\n");
  return kExitDone;
}

}  // namespace

RunFn setup_profile(Command& command) {
  auto o = std::make_shared<ProfileVerbOptions>();
  o->model.declare(command);
  o->problem.declare(command);
  return [o](const Invocation& invocation) { return run_profile(*o, invocation); };
}

}  // namespace heddle::cli
