// The hios suite on instances of a folder: FOLDER/NAME.json in the simulation's form and, where it is there,
// FOLDER/reference.jsonl with one line per instance, transfer model and number of devices:
//   {"instance":"sim_2001","transfer":"transfer_ms","gpus":4,"sequential":396.8,"ios":...,"lower_bound":...}
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "bench_hios.h"
#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/plan/hios_workload.h"

namespace heddle::bench {
namespace {

namespace fs = std::filesystem;

// What reference lines call the planners' makespans (ms).
const std::map<std::string, std::string> kNames = {
    {"sequential", "sequential"},   {"ios", "ios"},
    {"hios-mr-inter", "inter_mr"},  {"hios-mr", "hios_mr"},
    {"hios-lp-inter", "inter_lp"},  {"hios-lp", "hios_lp"},
    {"heft-stages", "heft_group2"}, {"stage-search", "anneal"}};
constexpr int64_t kMaxReferenceBytes = int64_t{64} << 20;

struct Case {
  std::string instance;
  HiosWorkloadOptions options;
  std::map<std::string, double> reference;  // by the lines' names
  std::string name() const {
    return instance + ", " + std::to_string(options.devices) + " devices, transfer by " +
           (options.transfer_by_reader ? "reader" : "source");
  }
};

Result<Case> read_case(const JsonCursor& at) {
  Case c;
  HEDDLE_ASSIGN_OR_RETURN(const auto instance_at, at.at("instance"));
  HEDDLE_ASSIGN_OR_RETURN(c.instance, instance_at.as_string());
  if (c.instance.empty() || c.instance.find('/') != std::string::npos)
    return instance_at.error("'" + c.instance + "' is not the name of a file here without its .json");
  HEDDLE_ASSIGN_OR_RETURN(const auto gpus, at.int_or("gpus", 4, 1, kMaxHiosDevices));
  c.options.devices = static_cast<int>(gpus);
  HEDDLE_ASSIGN_OR_RETURN(const auto transfer, at.string_or("transfer", "transfer_ms"));
  if (transfer != "transfer_ms" && transfer != "transfer_ms_code")
    return at.error("transfer is '" + transfer + "', expected \"transfer_ms\" or \"transfer_ms_code\"");
  c.options.transfer_by_reader = transfer == "transfer_ms_code";
  for (const auto& [planner, key] : kNames) {
    if (!at.has(key)) continue;
    HEDDLE_ASSIGN_OR_RETURN(c.reference[key], at.number_or(key, 0, 0, 1e12));
    if (!(c.reference[key] > 0)) return at.error(key + " is 0, expected a makespan in ms above 0");
  }
  if (at.has("lower_bound")) {
    HEDDLE_ASSIGN_OR_RETURN(c.reference["lower_bound"], at.number_or("lower_bound", 0, 0, 1e12));
  }
  return c;
}

Result<std::vector<Case>> read_references(const std::string& path) {
  HEDDLE_ASSIGN_OR_RETURN(const auto text, read_file(path, kMaxReferenceBytes));
  std::vector<Case> cases;
  size_t line = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const auto part = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    ++line;
    if (part.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const auto where = path + ": line " + std::to_string(line);
    auto json = parse_json(part);
    if (!json.ok()) return std::move(json).error().with_context(where);
    auto c = read_case(JsonCursor(*json));
    if (!c.ok()) return std::move(c).error().with_context(where);
    cases.push_back(std::move(*c));
  }
  if (cases.empty()) return invalid_input(path + ": holds no line; expected one per instance");
  return cases;
}

Result<std::vector<Case>> find_cases(const BenchOptions& options) {
  std::error_code error;
  if (!fs::is_directory(options.input, error))
    return not_found(options.input +
                     ": is no folder; expected simulation instances (.json) "
                     "and, where there is one, their reference.jsonl");
  const std::string reference =
      options.reference.empty() ? (fs::path(options.input) / "reference.jsonl").string() : options.reference;
  std::vector<Case> cases;
  if (!options.reference.empty() || file_exists(reference)) {
    HEDDLE_ASSIGN_OR_RETURN(cases, read_references(reference));
  } else {
    constexpr std::string_view kInstances[] = {".json"};
    HEDDLE_ASSIGN_OR_RETURN(const auto files, files_in(options.input, kInstances));
    for (const auto& file : files) cases.push_back({fs::path(file).stem().string(), {}, {}});
    if (cases.empty()) return not_found(options.input + ": holds no instance (.json)");
  }
  if (options.only.empty()) return cases;
  std::vector<std::string> names;
  for (const Case& c : cases) names.push_back(c.name());
  std::erase_if(cases, [&](const Case& c) {
    return std::none_of(options.only.begin(), options.only.end(),
                        [&](const std::string& part) { return c.name().find(part) != std::string::npos; });
  });
  if (cases.empty()) return not_found("--only lets no instance of " + options.input + " through");
  HEDDLE_RETURN_IF_ERROR(check_substrings(options, names));
  return cases;
}

// Over all cases with a reference: the mean of latency over reference, and the latency furthest from it.
struct Agreement {
  double ratios = 0, worst = 0;
  int count = 0;
};

Status add_case(const Case& c, const BenchOptions& options, const Control& control,
                std::map<std::string, Agreement>& agreements, std::vector<BenchRow>& rows) {
  const auto path = (fs::path(options.input) / (c.instance + ".json")).string();
  HEDDLE_ASSIGN_OR_RETURN(const auto problem, read_hios_workload(path, c.options));
  HEDDLE_ASSIGN_OR_RETURN(const auto figures, run_hios_planners(problem, options, control));
  const auto lower = c.reference.find("lower_bound");
  for (const auto& planner : hios_planners(options)) {
    auto row = hios_latency_row(c.name(), planner, planner + ": latency", figures.at(planner));
    if (lower != c.reference.end()) {
      row.beside("lower bound of the reference (ms)", lower->second);
    }
    const auto key = kNames.find(planner);
    const auto found = key == kNames.end() ? c.reference.end() : c.reference.find(key->second);
    if (found != c.reference.end()) {
      row.against(found->second, "reference.jsonl, " + found->first);
      const double ratio = row.value / found->second;
      Agreement& a = agreements[planner];
      a.ratios += ratio;
      ++a.count;
      if (std::abs(ratio - 1) > std::abs(a.worst)) a.worst = ratio - 1;
    }
    rows.push_back(std::move(row));
  }
  return {};
}

}  // namespace

Status bench_hios_input(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows) {
  HEDDLE_ASSIGN_OR_RETURN(const auto cases, find_cases(options));
  std::map<std::string, Agreement> agreements;
  double done = 0;
  for (const Case& c : cases) {
    HEDDLE_RETURN_IF_ERROR(
        whole_instance(control, rows, [&] { return add_case(c, options, control, agreements, rows); }));
    control.report("hios " + c.name(), ++done, static_cast<double>(cases.size()));
  }
  for (const auto& planner : hios_planners(options)) {
    const auto found = agreements.find(planner);
    if (found == agreements.end()) continue;
    const Agreement& a = found->second;
    auto row = hios_row("all " + std::to_string(a.count) + " with a reference", planner,
                        planner + ": mean latency over reference", "x", a.ratios / a.count);
    row.beside("largest difference (%)", 100 * a.worst);
    rows.push_back(std::move(row));
  }
  return {};
}

}  // namespace heddle::bench
