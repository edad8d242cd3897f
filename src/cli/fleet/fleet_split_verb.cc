// heddle fleet split: a fleet divided among several servers.
#include <filesystem>

#include "fleet_verbs.h"
#include "heddle/base/json.h"
#include "heddle/fleet/fleet_split.h"
#include "heddle/report/text_table.h"

namespace heddle::cli {
namespace {

struct SplitFlags {
  std::string fleet, plan, output;
  int64_t servers = 2;
  FleetGoalFlags goal;
};

std::string devices_text(const Fleet& fleet) {
  std::string text;
  for (const auto& c : fleet.classes)
    if (c.count > 0) text += (text.empty() ? "" : ", ") + std::to_string(c.count) + " x " + c.name;
  return text;
}

Result<int> run_fleet_split(const SplitFlags& o, const Invocation& invocation) {
  HEDDLE_ASSIGN_OR_RETURN(const auto fleet, read_fleet(o.fleet));
  HEDDLE_ASSIGN_OR_RETURN(const auto options, o.goal.options(invocation));
  FleetPlan plan;
  if (o.plan.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(plan, plan_fleet(fleet, "auto", options));
  } else {
    HEDDLE_ASSIGN_OR_RETURN(plan, read_fleet_plan(o.plan, fleet));
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto parts, split_fleet(fleet, plan, static_cast<int>(o.servers), options));
  std::error_code failed;
  std::filesystem::create_directories(o.output, failed);
  if (failed) return io_error(o.output + ": cannot make this folder: " + failed.message());
  Json rows = Json::array();
  TextTable table({{"files"},
                   {"models", TextTable::Align::kLeft, 40},
                   {"requests/s", TextTable::Align::kRight},
                   {"devices"}});
  for (const FleetPart& part : parts) {
    const std::string stem = o.output + "/" + part.fleet.name;
    HEDDLE_RETURN_IF_ERROR(write_fleet(stem + ".yaml", part.fleet));
    HEDDLE_RETURN_IF_ERROR(write_fleet_plan(stem + ".plan.json", part.plan, part.fleet));
    std::vector<std::string> models;
    double rate = 0;
    for (size_t m = 0; m < part.fleet.models.size(); ++m) {
      models.push_back(part.fleet.models[m].name);
      rate += part.plan.models[m].rate_per_s;
    }
    table.add_row({part.fleet.name, fmt::format("{}", fmt::join(models, ", ")), fmt::format("{:.6g}", rate),
                   devices_text(part.fleet)});
    rows.push_back(
        {{"fleet", stem + ".yaml"}, {"plan", stem + ".plan.json"}, {"models", models}, {"rate", rate}});
  }
  show_result(invocation, {{"servers", rows}},
              table.to_string() + "\nwritten to " + o.output +
                  ": serve each with `heddle serve NAME.yaml --plan NAME.plan.json`, and send a model's "
                  "requests to its "
                  "server\n");
  return kExitDone;
}

}  // namespace

RunFn setup_fleet_split(Command& command) {
  auto o = std::make_shared<SplitFlags>();
  command.positional("FLEET", o->fleet, "the fleet file");
  command.option("--servers", o->servers, "how many servers (default 2)", 1, kMaxFleetModels);
  command.option("--plan", o->plan, "divide this plan (default: planned by auto)");
  command.option("-o,--output", o->output, "folder for the fleet and plan files of each server");
  o->goal.declare(command);
  return [o](const Invocation& invocation) -> Result<int> {
    if (o->output.empty()) return invalid_input("-o: name a folder for the servers' files");
    return run_fleet_split(*o, invocation);
  };
}

}  // namespace heddle::cli
