// The hios suite on real networks: section VI's machine (two A40 with an NVLink bridge) with roofline times,
// for the paper's are not published. Inception-v3 and NASNet of the zoo at two sizes of picture, and whatever
// --models names (.json in IOS's or Heddle's form, .onnx, folders with such files).
#include <algorithm>
#include <filesystem>

#include "bench_hios.h"
#include "heddle/base/file.h"
#include "heddle/session/session.h"

namespace heddle::bench {
namespace {

namespace fs = std::filesystem;

constexpr const char* kZoo[] = {"zoo:inception-v3,image=299", "zoo:inception-v3,image=1024",
                                "zoo:nasnet-a-large,image=331", "zoo:nasnet-a-large,image=1024"};

Result<std::vector<std::string>> network_list(const BenchOptions& options) {
  if (options.models.empty()) return std::vector<std::string>(std::begin(kZoo), std::end(kZoo));
  std::vector<std::string> list;
  for (const auto& name : options.models) {
    std::error_code error;
    if (!fs::is_directory(name, error)) {
      list.push_back(name);
      continue;
    }
    constexpr std::string_view kNetworks[] = {".json", ".onnx"};
    HEDDLE_ASSIGN_OR_RETURN(const auto files, files_in(name, kNetworks));
    list.insert(list.end(), files.begin(), files.end());
  }
  if (list.empty()) return not_found("--models names no .json or .onnx file");
  std::sort(list.begin(), list.end());
  return list;
}

void add_model_rows(const std::string& name, const std::map<std::string, HiosFigures>& figures,
                    const BenchOptions& options, std::vector<BenchRow>& rows) {
  const double lp = figures.at("hios-lp").latency_ms;
  for (const auto& planner : hios_planners(options))
    rows.push_back(hios_latency_row(name, planner, planner + ": latency", figures.at(planner)));
  // The paper has figures of these two alone; IOS's files write the names with underscores.
  const auto is = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  const bool inception = is("inception-v3") || is("inception_v3");
  const bool nasnet = is("nasnet-a-large") || is("nasnet_large");
  for (const std::string other : {"sequential", "ios", "hios-mr"}) {
    auto row = hios_row(name, "hios-lp", "hios-lp: less latency than " + other, "%",
                        100 * (1 - lp / figures.at(other).latency_ms));
    if (inception) row.reference = other == "sequential" ? 19.7 : other == "ios" ? 16.5 : 16.8;
    if (nasnet) row.reference = other == "sequential" ? 14.5 : other == "ios" ? 11.1 : 16.2;
    if (row.reference)
      row.reference_source = "HIOS, section VI-D, the most over sizes of pictures (measured)";
    rows.push_back(std::move(row));
  }
}

Status add_network_rows(const std::string& name, const BenchOptions& options, const Control& control,
                        std::vector<BenchRow>& rows) {
  ProblemSettings settings;
  HEDDLE_ASSIGN_OR_RETURN(settings.cluster, open_cluster("preset:hios-a40"));
  settings.stage_width = 2;
  settings.stage_times = StageTimes::kSimulated;
  settings.measure = false;
  settings.store = options.store;
  HEDDLE_ASSIGN_OR_RETURN(const auto session, open_session({.path = name, .import = {}}, settings, control));
  HEDDLE_ASSIGN_OR_RETURN(const auto figures, run_hios_planners(session.problem, options, control));
  add_model_rows("models: " + name, figures, options, rows);
  return {};
}

}  // namespace

Status bench_hios_models(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows) {
  if (!wanted(options, "models")) return {};
  HEDDLE_ASSIGN_OR_RETURN(const auto list, network_list(options));
  for (const auto& name : list)
    HEDDLE_RETURN_IF_ERROR(
        whole_instance(control, rows, [&] { return add_network_rows(name, options, control, rows); }));
  return {};
}

}  // namespace heddle::bench
