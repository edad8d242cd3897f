#include "whatif_workload.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/plan/dnn_workload.h"
#include "heddle/planners/dnn_planner.h"
#include "heddle/report/text_table.h"

namespace heddle::cli {
namespace {

const std::vector<std::string> kDevices{"accelerator", "cpu"};
const std::vector<std::string> kScaled{"accelerator", "cpu", "link", "memory"};

struct Variant {
  std::string text;
  DnnWorkload workload;
};

Status check_name(const std::string& flag, const std::string& name, const std::vector<std::string>& names) {
  if (std::find(names.begin(), names.end(), name) != names.end()) return {};
  return Error(Code::kInvalidInput, flag + " " + name + ": no such part of a placement workload" +
                                        did_you_mean(name, names) + "; there are " + join_names(names));
}

Result<Variant> with_more(const DnnWorkload& workload, const char* flag, const std::string& name, int by) {
  HEDDLE_RETURN_IF_ERROR(check_name(flag, name, kDevices));
  Variant v{(by > 0 ? "one more " : "one less ") + name, workload};
  int& count = name == "cpu" ? v.workload.cpus : v.workload.accelerators;
  if (count + by < 0)
    return Error(Code::kInvalidInput, std::string(flag) + " " + name + ": the workload has none");
  count += by;
  if (v.workload.cpus + v.workload.accelerators == 0)
    return Error(Code::kInvalidInput, std::string(flag) + " " + name + ": it is the only device");
  return v;
}

Result<Variant> scaled(const DnnWorkload& workload, const std::string& text) {
  HEDDLE_ASSIGN_OR_RETURN(const auto parsed, parse_scale(text));
  const auto& [name, factor] = parsed;
  HEDDLE_RETURN_IF_ERROR(check_name("--scale", name, kScaled));
  Variant v{name + " x " + text.substr(name.size() + 1), workload};
  if (name == "memory") v.workload.accelerator_bytes *= factor;
  for (DnnNode& node : v.workload.nodes) {
    if (name == "accelerator") node.accelerator /= factor;
    if (name == "cpu") node.cpu /= factor;
    if (name == "link") node.cost /= factor;
  }
  return v;
}

Result<std::vector<Variant>> variants(const DnnWorkload& workload, const WhatifChanges& changes) {
  std::vector<Variant> list{{"as it is", workload}};
  for (const auto& name : changes.add) {
    HEDDLE_ASSIGN_OR_RETURN(list.emplace_back(), with_more(workload, "--add", name, 1));
  }
  for (const auto& name : changes.remove) {
    HEDDLE_ASSIGN_OR_RETURN(list.emplace_back(), with_more(workload, "--remove", name, -1));
  }
  for (const auto& text : changes.scale) {
    HEDDLE_ASSIGN_OR_RETURN(list.emplace_back(), scaled(workload, text));
  }
  if (list.size() == 1) {
    return Error(
        Code::kInvalidInput,
        "whatif needs a change: --add accelerator, --remove cpu or --scale NAME=FACTOR, for example");
  }
  return list;
}

std::string text_of(const char* format, double value) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

}  // namespace

Result<std::pair<std::string, double>> parse_scale(const std::string& text) {
  const auto eq = text.rfind('=');
  char* end = nullptr;
  const double factor = eq == std::string::npos ? 0 : std::strtod(text.c_str() + eq + 1, &end);
  if (!(factor > 0 && factor <= 1e6) || *end != '\0') {
    return Error(Code::kInvalidInput,
                 "--scale " + text + ": expected NAME=FACTOR with a factor above 0, for example gpu0=2");
  }
  return std::pair(text.substr(0, eq), factor);
}

Result<std::optional<int>> whatif_workload(const std::string& path, const WorkloadFlags& flags,
                                           const WhatifChanges& changes, const ProblemFlags& problem,
                                           const SearchFlags& search, const Invocation& invocation) {
  HEDDLE_ASSIGN_OR_RETURN(const auto kind, workload_kind(path));
  if (kind == WorkloadKind::kNone) {
    if (flags.contiguous || flags.pieces != 1)
      return Error(Code::kInvalidInput, path + ": --contiguous and --pieces are for placement workloads");
    return std::optional<int>();
  }
  if (kind == WorkloadKind::kFlow) {
    return Error(Code::kUnsupported,
                 path +
                     ": a flow workload gives the time of every flow between its devices, "
                     "so that they cannot be changed one by one; edit the file");
  }
  HEDDLE_ASSIGN_OR_RETURN(const DnnRules rules, placement_rules(path, flags, problem));
  HEDDLE_ASSIGN_OR_RETURN(const auto workload, read_dnn_workload(path));
  HEDDLE_ASSIGN_OR_RETURN(const auto list, variants(workload, changes));
  const bool latency = rules.objective == DnnObjective::kLatency;
  Json rows = Json::array();
  TextTable table({{"change"},
                   {latency ? "latency" : "largest load", TextTable::Align::kRight},
                   {"bound", TextTable::Align::kRight},
                   {"gap", TextTable::Align::kRight},
                   {"faster by", TextTable::Align::kRight},
                   {"at most", TextTable::Align::kRight}});
  double now = 0;
  for (const Variant& v : list) {
    DnnPlanOptions options;
    options.deadline = Deadline::after_seconds(search.time_limit_s, invocation.cancel);
    options.threads = static_cast<int>(search.threads);
    options.seed = static_cast<uint64_t>(search.seed);
    options.progress = invocation.progress;
    auto plan = plan_dnn(v.workload, rules, options);
    if (!plan.ok()) return std::move(plan).error().with_context(v.text);
    if (now <= 0) now = plan->value;
    const double gap = plan->bound > 0 ? std::max(0.0, plan->value / plan->bound - 1) : 0;
    const double gain = plan->value > 0 ? now / plan->value : 1,
                 most = plan->bound > 0 ? now / plan->bound : 0;
    Json row = {{"change", v.text}, {"value", plan->value}, {"bound", plan->bound},
                {"gap", gap},       {"speedup", gain},      {"planner", plan->planner}};
    if (most > 0) row["speedup_at_most"] = most;
    rows.push_back(std::move(row));
    table.add_row({v.text, text_of("%.6g", plan->value), text_of("%.6g", plan->bound),
                   text_of("%.1f %%", 100 * gap), text_of("%.3fx", gain),
                   most > 0 ? text_of("%.3fx", most) : ""});
  }
  if (invocation.progress) invocation.progress->finish();
  std::printf("%s", invocation.json ? (rows.dump(1) + "\n").c_str() : table.to_string().c_str());
  return std::optional<int>(kExitDone);
}

}  // namespace heddle::cli
