// Reads and writes fleet files; the format is in docs/fleet.md.
#include <filesystem>

#include "fleet_file.h"
#include "heddle/base/fields.h"
#include "heddle/base/hash.h"
#include "heddle/base/spelling.h"
#include "heddle/fleet/fleet.h"

namespace heddle {
namespace {

constexpr double kMax = 1e15;
constexpr int64_t kMostOps = 10'000'000;

Result<DeviceClass> read_class(const JsonCursor& at) {
  DeviceClass c;
  Fields f(at);
  f.required("name", c.name)
      .required("count", c.count, 0, kMaxFleetDevices)
      .optional("share_levels", c.share_levels, 1, kMaxShare)
      .optional("devices_per_server", c.devices_per_server, 1, 1024)
      .required("nic", c.nic_bytes_per_s, kBytesPerSecondUnit)
      .optional("cost_per_hour", c.cost_per_hour, 0, kMax)
      .optional("watts", c.watts, 0, kMax)
      .optional("memory", c.memory_bytes, kBytesUnit)
      .optional("devices", c.devices)
      .optional("slowdown", c.slowdown, 1, 1000);
  HEDDLE_RETURN_IF_ERROR(f.finish());
  return c;
}

// The member "file" of a model.
Result<FleetModelFile> read_model_file(const JsonCursor& at) {
  FleetModelFile file;
  Fields f(at);
  f.required("path",
             [&file](const JsonCursor& path) -> Status {
               HEDDLE_ASSIGN_OR_RETURN(file.path, path.as_string());
               return file.path.empty() ? path.error("expected the model's file") : Status();
             })
      .required("hash", file.hash, hex64_from_text, kHex64Expected)
      .optional("shapes", each_member("an object from input names to dimensions",
                                      [&file](const std::string& name, const JsonCursor& shape) {
                                        return take(shape, file.shapes[name], 0, INT64_MAX);
                                      }))
      .required("ops", each([&file](const JsonCursor& run) -> Status {
                  HEDDLE_ASSIGN_OR_RETURN(const auto pair, run.as_ints(0, kMostOps));
                  if (pair.size() != 2 || pair[0] < 1 || pair[1] >= kMaxBlocks)
                    return run.error("expected [how many ops follow each other, their block]");
                  if (static_cast<int64_t>(file.block_of.size()) + pair[0] > kMostOps)
                    return run.error("more than " + std::to_string(kMostOps) + " ops");
                  file.block_of.insert(file.block_of.end(), static_cast<size_t>(pair[0]),
                                       static_cast<int>(pair[1]));
                  return {};
                }))
      .optional("feature_maps", [&file](const JsonCursor& maps) -> Status {
        file.fp16_cuts = maps.value() == "fp16";
        if (file.fp16_cuts || maps.value() == "as they are") return {};
        return maps.error("is " + maps.describe() + ", expected 'fp16' or 'as they are'");
      });
  HEDDLE_RETURN_IF_ERROR(f.finish());
  return file;
}

Json to_json(const FleetModelFile& file) {
  Json shapes = Json::object(), ops = Json::array();
  for (const auto& [name, shape] : file.shapes) shapes[name] = shape;
  for (size_t i = 0; i < file.block_of.size();) {
    size_t end = i;
    while (end < file.block_of.size() && file.block_of[end] == file.block_of[i]) ++end;
    ops.push_back({end - i, file.block_of[i]});
    i = end;
  }
  Json json = {{"path", file.path}, {"hash", hex64(file.hash)}, {"ops", std::move(ops)}};
  if (!shapes.empty()) json["shapes"] = std::move(shapes);
  if (file.fp16_cuts) json["feature_maps"] = "fp16";
  return json;
}

Result<size_t> class_at(const JsonCursor& at, const Fleet& fleet, const std::string& name) {
  const int c = fleet.class_named(name);
  if (c >= 0) return static_cast<size_t>(c);
  std::vector<std::string> names;
  for (const auto& known : fleet.classes) names.push_back(known.name);
  return at.error("no class is named " + quote_text(name) + did_you_mean(name, names) + "; there are " +
                  join_names(names));
}

// The member "times_from" of a model.
Status read_sources(const JsonCursor& at, const Fleet& fleet, FleetModel& m) {
  m.times_from.resize(fleet.classes.size());
  const auto read_source = [&](const std::string& name, const JsonCursor& source) -> Status {
    HEDDLE_ASSIGN_OR_RETURN(const size_t c, class_at(at, fleet, name));
    auto& from = m.times_from[c].emplace();
    Fields f(source);
    f.required("origin", from.origin, origin_named,
               "'measured', 'given', 'interpolated', 'scaled' or 'estimated'")
        .required("error_factor", from.error_factor, 1, 1000);
    return f.finish();
  };
  return each_member("an object of class names", read_source)(at);
}

Status read_times(const JsonCursor& at, const Fleet& fleet, FleetModel& m) {
  m.latency_us.resize(fleet.classes.size());
  const auto read_class_times = [&](const std::string& name, const JsonCursor& shares) -> Status {
    HEDDLE_ASSIGN_OR_RETURN(const size_t c, class_at(at, fleet, name));
    auto& times = m.latency_us[c];
    const auto read_batch = [&times](const JsonCursor& blocks) {
      return take(blocks, times.back().emplace_back(), 0, kMax);
    };
    const auto read_share = [&](const JsonCursor& batches) {
      times.emplace_back();
      return each(read_batch, kMaxFleetBatch)(batches);
    };
    return each(read_share, kMaxShare)(shares);
  };
  return each_member("an object of class names", read_class_times)(at);
}

Result<FleetModel> read_model(const JsonCursor& at, const Fleet& fleet) {
  FleetModel m;
  Fields f(at);
  f.required("name", m.name)
      .required("slo", m.slo_us, kMicrosecondsUnit)
      .optional("margin", m.margin_us, kMicrosecondsUnit)
      .optional("weight", m.weight, 0, kMax)
      .optional("estimated_rate_per_s", m.estimated_rate_per_s, 0, kMax)
      .required("cut_bytes",
                [&m](const JsonCursor& cuts) -> Status {
                  HEDDLE_RETURN_IF_ERROR(take(cuts, m.cut_bytes, 0, kMax));
                  m.blocks = static_cast<int>(m.cut_bytes.size()) - 1;
                  if (m.blocks >= 1 && m.blocks <= kMaxBlocks) return {};
                  return cuts.error("has " + std::to_string(m.cut_bytes.size()) +
                                    " entries; expected one more than there are blocks, 2 to " +
                                    std::to_string(kMaxBlocks + 1));
                })
      .optional("parameter_bytes", m.parameter_bytes, 0, int64_t{1} << 50)
      .optional("file", m.file, read_model_file)
      .optional("times_from", [&](const JsonCursor& sources) { return read_sources(sources, fleet, m); })
      .required("latency_us", [&](const JsonCursor& times) -> Status {
        auto status = read_times(times, fleet, m);
        if (status.ok()) return {};
        return std::move(status).error().with_context("model " + quote_text(m.name));
      });
  HEDDLE_RETURN_IF_ERROR(f.finish());
  return m;
}

}  // namespace

Result<Fleet> fleet_from_json(const Json& json) {
  Fleet fleet;
  Fields f(JsonCursor(json), "heddle-fleet", 1);
  f.optional("name", fleet.name)
      .optional("max_partitions", fleet.max_partitions, 1, kMaxPartitions)
      .optional("batch_delay_factor", fleet.batch_delay_factor, 0, 1e6)
      .required("classes", each(
                               [&](const JsonCursor& at) -> Status {
                                 HEDDLE_ASSIGN_OR_RETURN(auto c, read_class(at));
                                 if (fleet.class_named(c.name) >= 0)
                                   return at.error("a second class is named " + quote_text(c.name));
                                 fleet.classes.push_back(std::move(c));
                                 return {};
                               },
                               kMaxFleetClasses))
      .required("models", each_into(
                              fleet.models, [&](const JsonCursor& at) { return read_model(at, fleet); },
                              kMaxFleetModels));
  HEDDLE_RETURN_IF_ERROR(f.finish());
  HEDDLE_RETURN_IF_ERROR(check_fleet(fleet));
  return fleet;
}

Json to_json(const Fleet& fleet) {
  Json classes = Json::array(), models = Json::array();
  for (const auto& c : fleet.classes) {
    Json j = {{"name", c.name},
              {"count", c.count},
              {"share_levels", c.share_levels},
              {"devices_per_server", c.devices_per_server},
              {"nic", c.nic_bytes_per_s}};
    if (c.cost_per_hour > 0) j["cost_per_hour"] = c.cost_per_hour;
    if (c.watts > 0) j["watts"] = c.watts;
    if (c.memory_bytes > 0) j["memory"] = c.memory_bytes;
    if (!c.devices.empty()) j["devices"] = c.devices;
    if (c.slowdown > 1) j["slowdown"] = c.slowdown;
    classes.push_back(std::move(j));
  }
  for (const auto& m : fleet.models) {
    Json j = {{"name", m.name}, {"slo", m.slo_us}, {"margin", m.margin_us}, {"weight", m.weight}};
    if (m.estimated_rate_per_s > 0) j["estimated_rate_per_s"] = m.estimated_rate_per_s;
    j["cut_bytes"] = m.cut_bytes;
    if (!m.parameter_bytes.empty()) j["parameter_bytes"] = m.parameter_bytes;
    if (!m.file.path.empty()) j["file"] = to_json(m.file);
    Json sources = Json::object();
    for (size_t c = 0; c < m.times_from.size(); ++c)
      if (const auto& from = m.times_from[c])
        sources[fleet.classes[c].name] = {{"origin", origin_name(from->origin)},
                                          {"error_factor", from->error_factor}};
    if (!sources.empty()) j["times_from"] = std::move(sources);
    Json times = Json::object();
    for (size_t c = 0; c < m.latency_us.size(); ++c)
      if (!m.latency_us[c].empty()) times[fleet.classes[c].name] = m.latency_us[c];
    j["latency_us"] = std::move(times);
    models.push_back(std::move(j));
  }
  return {{"format", "heddle-fleet"},
          {"version", 1},
          {"name", fleet.name},
          {"max_partitions", fleet.max_partitions},
          {"batch_delay_factor", fleet.batch_delay_factor},
          {"classes", std::move(classes)},
          {"models", std::move(models)}};
}

Result<Fleet> read_fleet(const std::string& path) {
  auto fleet = read_document<Fleet>(path, "fleet", [](const Json& json) { return fleet_from_json(json); });
  if (!fleet.ok()) return fleet;
  if (fleet->name.empty()) fleet->name = stem_of(path);
  const auto folder = std::filesystem::path(path).parent_path();
  for (auto& m : fleet->models)
    if (!m.file.path.empty()) m.file.path = (folder / m.file.path).string();  // absolute paths stay
  return fleet;
}

Status write_fleet(const std::string& path, const Fleet& fleet) {
  return write_document(path, to_json(fleet));
}

}  // namespace heddle
