// heddle fleet profile: blocks of models measured on this machine's devices at several batch sizes, as a
// fleet file. What is measured is in the profile store at once, so the same command goes on where it was
// stopped.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>

#include "fleet_verbs.h"
#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/base/units.h"
#include "heddle/fleet/prepartition.h"
#include "heddle/report/text_table.h"
#include "heddle/runtime/share_measurer.h"
#include "workbench.h"

namespace heddle::cli {
namespace {

struct ProfileFlags {
  std::string models, cluster = "preset:local", method = "balanced", store, output;
  std::vector<std::string> shapes;
  bool fp16_cuts = false;
  int64_t blocks = 10, batches = 4, share_levels = 1;
  double slo_factor = 5, margin = 0.4;
};

// Devices of one target run alike: they are one class. Core sets that overlap cannot be pools at once: a
// class whose cores another class before it has counts no device until its user says so.
struct ClassList {
  std::vector<DeviceClass> classes;
  std::vector<DeviceId> device;  // one of each
};

constexpr double kLocalNic_bytes = 1e9;  // where the cluster's file has no link between hosts

Result<ClassList> classes_of(const Cluster& cluster, const std::vector<DeviceId>& devices,
                             int64_t share_levels) {
  ClassList out;
  std::map<std::string, size_t> index;
  std::map<std::pair<HostId, int>, size_t> owner;  // of a core: the first class that has it
  for (const auto id : devices) {
    const auto& d = cluster.device(id);
    if (d.target.empty()) continue;
    const auto own = index.contains(d.target) ? index[d.target] : out.classes.size();
    bool free = true;
    for (const int core : d.cores)
      free = owner.emplace(std::pair(d.host, core), own).first->second == own && free;
    const auto [entry, fresh] = index.emplace(d.target, out.classes.size());
    if (!fresh) {
      auto& c = out.classes[entry->second];
      c.count += free;
      // Those that can be used at once come first.
      c.devices.insert(free ? c.devices.begin() + (c.count - 1) : c.devices.end(), d.name);
      ++c.devices_per_server;
      continue;
    }
    DeviceClass c;
    c.name = d.name;
    c.count = free;
    c.devices = {d.name};
    c.memory_bytes = d.memory_bytes;
    c.nic_bytes_per_s = kLocalNic_bytes;
    c.share_levels = static_cast<int>(std::clamp<int64_t>(most_shares(d), 1, share_levels));
    out.classes.push_back(std::move(c));
    out.device.push_back(id);
  }
  if (out.classes.empty())
    return Error(Code::kInvalidInput, "no device of the cluster is of this machine; nothing can be measured");
  double nic = 0;
  for (const auto& link : cluster.links()) nic = std::max(nic, link.bytes_per_s);
  if (nic > 0)
    for (auto& c : out.classes) c.nic_bytes_per_s = nic;
  return out;
}

// Times of the blocks at one batch size on a share 1/`share` of one device of each class that has such
// shares, with all shares busy, [class][block]; classes without them have none.
Result<std::vector<std::vector<double>>> measure_blocks(const LoadedModel& base, ModelFlags flags,
                                                        int64_t batch, int share, const Cluster& cluster,
                                                        const ClassList& classes,
                                                        const std::vector<std::vector<OpId>>& blocks,
                                                        ProfileStore& store, const Invocation& invocation) {
  const std::string path = flags.model;
  flags.batch = batch;
  HEDDLE_ASSIGN_OR_RETURN(const auto loaded, load_model(flags));
  if (!loaded.model || loaded.graph->num_ops() != base.graph->num_ops())
    return Error(Code::kUnsupported, path + ": has other ops at batch " + std::to_string(batch) +
                                         " than at batch 1; measure fewer batch sizes");
  std::vector<ProfileRequest> wanted;
  for (size_t c = 0; c < classes.device.size(); ++c)
    for (const auto& ops : blocks)
      if (share <= classes.classes[c].share_levels) wanted.push_back({ops, classes.device[c]});
  MeasureOptions measure_options;
  measure_options.min_s = kUnitSeconds;
  measure_options.max_s = 3 * kUnitSeconds;
  const auto measurer = make_share_measurer(loaded.model, share, measure_options);
  const auto signature = [&base](std::span<const OpId> ops) { return base.model->signature(ops); };
  ProfileOptions options;
  options.deadline = Deadline::never(invocation.cancel);
  options.progress = invocation.progress;
  options.batch = static_cast<int>(batch);
  options.what = "blocks of " + base.name + ", batch " + std::to_string(batch) +
                 (share > 1 ? ", share 1/" + std::to_string(share) : "");
  HEDDLE_ASSIGN_OR_RETURN(const auto summary, profile_share(*loaded.graph, cluster, wanted, signature, share,
                                                            *measurer, store, options));
  if (!summary.complete && invocation.cancel.cancelled())
    return Error(Code::kCancelled, "stopped; what was measured is in " + store.path() +
                                       ", the same command goes on from there");
  std::vector<std::vector<double>> times;
  for (size_t c = 0; c < classes.device.size(); ++c) {
    times.emplace_back();
    if (share > classes.classes[c].share_levels) continue;
    for (size_t k = 0; k < blocks.size(); ++k) {
      HEDDLE_ASSIGN_OR_RETURN(const auto found,
                              store.find({signature(blocks[k]), cluster.device(classes.device[c]).target,
                                          static_cast<int>(batch), 1. / share}));
      if (!found)
        return Error(Code::kInvalidInput,
                     path + ": block " + std::to_string(k) + " could not be measured on " +
                         classes.classes[c].name + " at batch " + std::to_string(batch) + ", share 1/" +
                         std::to_string(share) +
                         (summary.first_failure.empty() ? "" : ": " + summary.first_failure));
      times.back().push_back(found->median_us);
    }
  }
  return times;
}

std::string stem_of_model(const std::string& path) { return std::filesystem::path(path).stem().string(); }

// "NAME=DIMS" is for all models, "MODEL:NAME=DIMS" for the one of that file name without its suffix.
std::vector<std::string> shapes_for(const ProfileFlags& o, const std::string& path) {
  std::vector<std::string> stems, shapes;
  for (const auto& p : split_list(o.models)) stems.push_back(stem_of_model(p));
  for (const auto& shape : o.shapes) {
    const auto colon = shape.find(':');
    const auto model = shape.substr(0, colon);
    const bool for_one = colon != std::string::npos && colon < shape.find('=') &&
                         std::find(stems.begin(), stems.end(), model) != stems.end();
    if (!for_one) shapes.push_back(shape);
    if (for_one && model == stem_of_model(path)) shapes.push_back(shape.substr(colon + 1));
  }
  return shapes;
}

// Where the model is and which of its ops each block has, for devices that are to run it. The path is taken
// from the fleet file's folder.
Result<FleetModelFile> file_of(const ModelFlags& flags, const Model& model,
                               const std::vector<std::vector<OpId>>& blocks, const ProfileFlags& o) {
  namespace fs = std::filesystem;
  FleetModelFile file;
  std::error_code error;
  const auto path = fs::absolute(flags.model, error);
  const auto folder = fs::absolute(o.output, error).parent_path();
  file.path = path.lexically_normal().lexically_proximate(folder.lexically_normal()).string();
  file.hash = model.file_hash();
  HEDDLE_ASSIGN_OR_RETURN(auto options, flags.import_options());
  file.shapes = std::move(options.shapes);
  file.block_of.assign(model.graph()->num_ops(), 0);
  for (size_t k = 0; k < blocks.size(); ++k)
    for (const auto op : blocks[k]) file.block_of[op.index()] = static_cast<int>(k);
  file.fp16_cuts = o.fp16_cuts;
  return file;
}

// What crosses the cuts with float32 as float16. The first and the last are a request's own tensors and stay.
void halve_cuts(const Graph& graph, const std::vector<int>& block_of, std::vector<double>& cut_bytes) {
  for (size_t t = 0; t < graph.num_tensors(); ++t) {
    const auto& tensor = graph.tensor(TensorId(t));
    if (tensor.dtype != DType::kF32 || !tensor.producer.valid()) continue;
    int last = block_of[tensor.producer.index()];
    for (const auto reader : tensor.consumers) last = std::max(last, block_of[reader.index()]);
    for (int k = block_of[tensor.producer.index()] + 1; k <= last; ++k)
      cut_bytes[static_cast<size_t>(k)] -= static_cast<double>(tensor.bytes) / 2;
  }
}

Result<FleetModel> profile_model(const ProfileFlags& o, const std::string& path, std::optional<Fleet>& fleet,
                                 const Invocation& invocation) {
  ModelFlags flags;
  flags.model = path;
  flags.shapes = shapes_for(o, path);
  flags.batch = 1;
  ProblemFlags problem_flags;
  problem_flags.cluster = o.cluster;
  problem_flags.store = o.store;
  HEDDLE_ASSIGN_OR_RETURN(const auto bench, make_workbench(flags, problem_flags, invocation));
  if (!bench.may_measure)
    return Error(Code::kInvalidInput,
                 path + " on " + o.cluster +
                     ": nothing can be measured; expected a real model and a device of this "
                     "machine (preset:local)");
  HEDDLE_ASSIGN_OR_RETURN(const auto classes,
                          classes_of(*bench.cluster, bench.problem.usable_devices(), o.share_levels));
  if (!fleet) {
    fleet.emplace();
    fleet->name = bench.cluster->name();
    fleet->classes = classes.classes;
  }
  const auto& graph = *bench.problem.graph;
  std::vector<std::vector<double>> us;
  for (const auto device : classes.device) {
    us.emplace_back();
    for (size_t op = 0; op < graph.num_ops(); ++op)
      us.back().push_back(bench.problem.costs->us(OpId(op), device));
  }
  auto parts = prepartition(graph, us, static_cast<int>(o.blocks), *prepartition_method_named(o.method));
  if (!parts.ok()) return std::move(parts).error().with_context(path);
  FleetModel model;
  model.name = bench.loaded.name;
  model.blocks = static_cast<int>(parts->blocks.size());
  model.cut_bytes = parts->cut_bytes;
  for (const double b : parts->parameter_bytes) model.parameter_bytes.push_back(static_cast<int64_t>(b));
  model.latency_us.resize(classes.classes.size());
  std::vector<std::vector<OpId>> blocks;
  for (const auto& ops : parts->blocks) blocks.push_back(finest_ops(graph, ops));
  HEDDLE_ASSIGN_OR_RETURN(model.file, file_of(flags, *bench.loaded.model, blocks, o));
  if (o.fp16_cuts) halve_cuts(*bench.loaded.graph, model.file.block_of, model.cut_bytes);
  int levels = 1;
  for (const auto& c : classes.classes) levels = std::max(levels, c.share_levels);
  for (int share = 1; share <= levels; ++share) {
    // A part of a device takes a part of the requests at once.
    for (int64_t batch = 1; batch <= std::max<int64_t>(1, o.batches / share); ++batch) {
      HEDDLE_ASSIGN_OR_RETURN(
          const auto times, measure_blocks(bench.loaded, flags, batch, share, *bench.cluster, classes, blocks,
                                           *bench.store, invocation));
      for (size_t c = 0; c < times.size(); ++c) {
        if (times[c].empty()) continue;
        model.latency_us[c].resize(static_cast<size_t>(share));
        model.latency_us[c].back().push_back(times[c]);
      }
    }
  }
  // As the paper sets it: a multiple of the fastest class's time for one request.
  double fastest = INFINITY;
  for (const auto& of_class : model.latency_us) {
    double sum = 0;
    for (const double t : of_class[0][0]) sum += t;
    fastest = std::min(fastest, sum);
  }
  model.slo_us = o.slo_factor * fastest;
  model.margin_us = o.margin * model.slo_us;
  return model;
}

Result<int> run_fleet_profile(const ProfileFlags& o, const Invocation& invocation) {
  if (o.output.empty()) return Error(Code::kInvalidInput, "fleet profile needs -o FILE.json or FILE.yaml");
  HEDDLE_RETURN_IF_ERROR(check_output(o.output));
  if (!prepartition_method_named(o.method)) {
    const std::vector<std::string> names = {"greedy", "balanced"};
    return Error(Code::kInvalidInput,
                 "--blocks-by " + o.method + ": expected greedy or balanced" + did_you_mean(o.method, names));
  }
  std::optional<Fleet> fleet;
  std::vector<FleetModel> models;
  for (const auto& path : split_list(o.models)) {
    HEDDLE_ASSIGN_OR_RETURN(auto model, profile_model(o, path, fleet, invocation));
    models.push_back(std::move(model));
  }
  if (!fleet) return Error(Code::kInvalidInput, "fleet profile needs a model");
  fleet->models = std::move(models);
  HEDDLE_RETURN_IF_ERROR(check_fleet(*fleet));
  HEDDLE_RETURN_IF_ERROR(write_fleet(o.output, *fleet));
  if (invocation.progress) invocation.progress->finish();
  if (invocation.json) {
    Json names = Json::array();
    for (const auto& m : fleet->models)
      names.push_back({{"model", m.name}, {"blocks", m.blocks}, {"slo_us", m.slo_us}});
    std::printf("%s\n", Json{{"output", o.output}, {"models", names}}.dump(1).c_str());
    return kExitDone;
  }
  TextTable table({{"model"},
                   {"blocks", TextTable::Align::kRight},
                   {"class"},
                   {"batch 1", TextTable::Align::kRight},
                   {"batch " + std::to_string(o.batches), TextTable::Align::kRight},
                   {"shares"},
                   {"SLO", TextTable::Align::kRight}});
  for (const auto& m : fleet->models)
    for (size_t c = 0; c < fleet->classes.size(); ++c) {
      const auto sum = [&](const std::vector<double>& times) {
        double total = 0;
        for (const double t : times) total += t;
        return format_us(total);
      };
      // The smallest share at batch 1 beside the whole device.
      const auto v = m.latency_us[c].size();
      const auto shares =
          v < 2 ? "1/1" : "1/" + std::to_string(v) + ": " + sum(m.latency_us[c].back().front());
      table.add_row({m.name, std::to_string(m.blocks), fleet->classes[c].name,
                     sum(m.latency_us[c][0].front()), sum(m.latency_us[c][0].back()), shares,
                     format_us(m.slo_us)});
    }
  std::printf(
      "%s%s is written: set counts, SLOs, weights, prices and further classes there;\n"
      "`heddle serve` runs its models on the devices that it names\n",
      table.to_string().c_str(), o.output.c_str());
  return kExitDone;
}

}  // namespace

RunFn setup_fleet_profile(Command& command) {
  auto o = std::make_shared<ProfileFlags>();
  command.positional("MODELS", o->models, ".onnx files, comma-separated");
  command.option("--cluster", o->cluster,
                 "cluster file, or preset:NAME (default preset:local, this machine)");
  command.option("--blocks", o->blocks, "blocks of each model (default 10)", 1, kMaxBlocks);
  command.option(
      "--blocks-by", o->method,
      "balanced (default: least bytes between blocks of about equal time on all classes) or greedy");
  command.option("--batches", o->batches, "measure batch sizes 1 to N (default 4)", 1, kMaxFleetBatch);
  command.option(
      "--share-levels", o->share_levels,
      "measure also shares 1/2 to 1/N of devices with so many cores or parts, at batch sizes up to the N-th "
      "part, while all shares are busy (default 1: whole devices)",
      1, kMaxShare);
  command.list(
      "--shape", o->shapes,
      "set an input's shape: NAME=1,3,224,224, or MODEL:NAME=1,3,224,224 for one model (repeatable)");
  command.flag("--fp16-cuts", o->fp16_cuts,
               "feature maps of float32 are to cross cuts as float16, which halves their bytes");
  command.option("--slo-factor", o->slo_factor, "SLO as a multiple of the fastest class's time (default 5)",
                 1, 1e6);
  command.option("--margin", o->margin, "part of the SLO that planning keeps free (default 0.4)", 0, 0.99);
  command.option("--store", o->store, "profile store file (default: the user's cache)");
  command.option("-o,--output", o->output, "the fleet file (.json or .yaml)");
  return [o](const Invocation& invocation) { return run_fleet_profile(*o, invocation); };
}

}  // namespace heddle::cli
