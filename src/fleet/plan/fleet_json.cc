// Reads and writes fleet files; the format is in docs/fleet.md.
#include <filesystem>
#include <functional>

#include "fleet_file.h"
#include "heddle/base/hash.h"
#include "heddle/base/spelling.h"
#include "heddle/base/units.h"
#include "heddle/fleet/fleet.h"

namespace heddle {
namespace {

constexpr double kMax = 1e15;
constexpr int64_t kMostOps = 10'000'000;

// Reads a number, or text with a unit.
Result<double> quantity(const JsonCursor& node, std::string_view key, std::optional<double> fallback,
                        const std::function<std::optional<double>(std::string_view)>& parse,
                        const char* expected) {
  if (!node.has(key) && fallback) return *fallback;
  HEDDLE_ASSIGN_OR_RETURN(const auto at, node.at(key));
  if (!at.value().is_string()) return at.as_number(0, kMax);
  HEDDLE_ASSIGN_OR_RETURN(const auto text, at.as_string());
  const auto value = parse(text);
  if (!value) return at.error("is " + quote_text(text) + "; expected " + expected);
  return *value;
}

std::optional<double> bytes_of(std::string_view text) {
  const auto bytes = parse_bytes(text);
  return bytes ? std::optional(static_cast<double>(*bytes)) : std::nullopt;
}

Result<DeviceClass> read_class(const JsonCursor& at) {
  HEDDLE_RETURN_IF_ERROR(at.check_keys({"name", "count", "share_levels", "devices_per_server", "nic",
                                        "cost_per_hour", "watts", "memory", "devices", "slowdown"}));
  DeviceClass c;
  HEDDLE_ASSIGN_OR_RETURN(const auto name, at.at("name"));
  HEDDLE_ASSIGN_OR_RETURN(c.name, name.as_string());
  HEDDLE_ASSIGN_OR_RETURN(const auto count, at.at("count"));
  HEDDLE_ASSIGN_OR_RETURN(c.count, count.as_int(0, kMaxFleetDevices));
  HEDDLE_ASSIGN_OR_RETURN(const auto levels, at.int_or("share_levels", 1, 1, kMaxShare));
  c.share_levels = static_cast<int>(levels);
  HEDDLE_ASSIGN_OR_RETURN(const auto per_server, at.int_or("devices_per_server", 1, 1, 1024));
  c.devices_per_server = static_cast<int>(per_server);
  HEDDLE_ASSIGN_OR_RETURN(c.nic_bytes_per_s, quantity(at, "nic", std::nullopt, parse_bandwidth,
                                                      "bytes per second, or a text such as \"10Gbit/s\""));
  HEDDLE_ASSIGN_OR_RETURN(c.cost_per_hour, at.number_or("cost_per_hour", 0, 0, kMax));
  HEDDLE_ASSIGN_OR_RETURN(c.watts, at.number_or("watts", 0, 0, kMax));
  HEDDLE_ASSIGN_OR_RETURN(const auto memory,
                          quantity(at, "memory", 0, bytes_of, "bytes, or a text such as \"24GiB\""));
  c.memory_bytes = static_cast<int64_t>(memory);
  if (at.has("devices")) {
    HEDDLE_ASSIGN_OR_RETURN(const auto devices, at.at("devices"));
    HEDDLE_ASSIGN_OR_RETURN(c.devices, devices.as_strings());
  }
  HEDDLE_ASSIGN_OR_RETURN(c.slowdown, at.number_or("slowdown", 1, 1, 1000));
  return c;
}

// The member "file" of a model.
Result<FleetModelFile> read_model_file(const JsonCursor& at) {
  HEDDLE_RETURN_IF_ERROR(at.check_keys({"path", "hash", "shapes", "ops", "feature_maps"}));
  FleetModelFile file;
  HEDDLE_ASSIGN_OR_RETURN(const auto path, at.at("path"));
  HEDDLE_ASSIGN_OR_RETURN(file.path, path.as_string());
  if (file.path.empty()) return path.error("expected the model's file");
  HEDDLE_ASSIGN_OR_RETURN(const auto hash, at.at("hash"));
  HEDDLE_ASSIGN_OR_RETURN(const std::string digits, hash.as_string());
  if (digits.size() != 16 || digits.find_first_not_of("0123456789abcdef") != std::string::npos)
    return hash.error("expected 16 lower-case hexadecimal digits, as `heddle fleet profile` writes them");
  file.hash = std::stoull(digits, nullptr, 16);
  if (at.has("shapes")) {
    HEDDLE_ASSIGN_OR_RETURN(const auto shapes, at.at("shapes"));
    if (!shapes.value().is_object()) return shapes.error("expected an object from input names to dimensions");
    for (const auto& [name, shape] : shapes.value().items()) {
      HEDDLE_ASSIGN_OR_RETURN(const auto dims, shapes.at(name));
      HEDDLE_ASSIGN_OR_RETURN(file.shapes[name], dims.as_ints(0, INT64_MAX));
    }
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto ops, at.at("ops"));
  HEDDLE_ASSIGN_OR_RETURN(const auto runs, ops.elements());
  for (const auto& run : runs) {
    HEDDLE_ASSIGN_OR_RETURN(const auto pair, run.as_ints(0, kMostOps));
    if (pair.size() != 2 || pair[0] < 1 || pair[1] >= kMaxBlocks)
      return run.error("expected [how many ops follow each other, their block]");
    if (static_cast<int64_t>(file.block_of.size()) + pair[0] > kMostOps)
      return run.error("more than " + std::to_string(kMostOps) + " ops");
    file.block_of.insert(file.block_of.end(), static_cast<size_t>(pair[0]), static_cast<int>(pair[1]));
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto maps, at.string_or("feature_maps", "as they are"));
  if (maps != "as they are" && maps != "fp16")
    return at.error("feature_maps: expected \"fp16\" or \"as they are\"");
  file.fp16_cuts = maps == "fp16";
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

Status read_times(const JsonCursor& at, const Fleet& fleet, FleetModel& m) {
  if (!at.value().is_object()) return at.error("expected an object of class names");
  m.latency_us.resize(fleet.classes.size());
  for (const auto& [name, unused] : at.value().items()) {
    const int c = fleet.class_named(name);
    if (c < 0) {
      std::vector<std::string> names;
      for (const auto& known : fleet.classes) names.push_back(known.name);
      return at.error("no class is named " + quote_text(name) + did_you_mean(name, names) + "; there are " +
                      join_names(names));
    }
    HEDDLE_ASSIGN_OR_RETURN(const auto shares_at, at.at(name));
    HEDDLE_ASSIGN_OR_RETURN(const auto shares, shares_at.elements(kMaxShare));
    for (const auto& share : shares) {
      auto& of_share = m.latency_us[static_cast<size_t>(c)].emplace_back();
      HEDDLE_ASSIGN_OR_RETURN(const auto batches, share.elements(kMaxFleetBatch));
      for (const auto& batch : batches) {
        HEDDLE_ASSIGN_OR_RETURN(auto blocks, batch.as_numbers(0, kMax));
        of_share.push_back(std::move(blocks));
      }
    }
  }
  return {};
}

Result<FleetModel> read_model(const JsonCursor& at, const Fleet& fleet) {
  HEDDLE_RETURN_IF_ERROR(at.check_keys({"name", "slo", "margin", "weight", "estimated_rate_per_s",
                                        "cut_bytes", "parameter_bytes", "latency_us", "file"}));
  const auto* kTime = "us, or a text such as \"80ms\"";
  FleetModel m;
  HEDDLE_ASSIGN_OR_RETURN(const auto name, at.at("name"));
  HEDDLE_ASSIGN_OR_RETURN(m.name, name.as_string());
  HEDDLE_ASSIGN_OR_RETURN(m.slo_us, quantity(at, "slo", std::nullopt, parse_time_us, kTime));
  HEDDLE_ASSIGN_OR_RETURN(m.margin_us, quantity(at, "margin", 0, parse_time_us, kTime));
  HEDDLE_ASSIGN_OR_RETURN(m.weight, at.number_or("weight", 1, 0, kMax));
  HEDDLE_ASSIGN_OR_RETURN(m.estimated_rate_per_s, at.number_or("estimated_rate_per_s", 0, 0, kMax));
  HEDDLE_ASSIGN_OR_RETURN(const auto cuts, at.at("cut_bytes"));
  HEDDLE_ASSIGN_OR_RETURN(m.cut_bytes, cuts.as_numbers(0, kMax));
  if (m.cut_bytes.size() < 2 || m.cut_bytes.size() > static_cast<size_t>(kMaxBlocks) + 1)
    return cuts.error("has " + std::to_string(m.cut_bytes.size()) +
                      " entries; expected one more than there are blocks, 2 to " +
                      std::to_string(kMaxBlocks + 1));
  m.blocks = static_cast<int>(m.cut_bytes.size()) - 1;
  if (at.has("parameter_bytes")) {
    HEDDLE_ASSIGN_OR_RETURN(const auto parameters, at.at("parameter_bytes"));
    HEDDLE_ASSIGN_OR_RETURN(m.parameter_bytes, parameters.as_ints(0, int64_t{1} << 50));
  }
  if (at.has("file")) {
    HEDDLE_ASSIGN_OR_RETURN(const auto file, at.at("file"));
    HEDDLE_ASSIGN_OR_RETURN(m.file, read_model_file(file));
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto times, at.at("latency_us"));
  if (auto status = read_times(times, fleet, m); !status.ok())
    return std::move(status).error().with_context("model " + quote_text(m.name));
  return m;
}

}  // namespace

Result<Fleet> fleet_from_json(const Json& json) {
  const JsonCursor root(json);
  HEDDLE_RETURN_IF_ERROR(root.check_keys(
      {"format", "version", "name", "max_partitions", "batch_delay_factor", "classes", "models"}));
  HEDDLE_RETURN_IF_ERROR(check_format(root, "heddle-fleet"));
  Fleet fleet;
  HEDDLE_ASSIGN_OR_RETURN(fleet.name, root.string_or("name", ""));
  HEDDLE_ASSIGN_OR_RETURN(const auto partitions, root.int_or("max_partitions", 2, 1, kMaxPartitions));
  fleet.max_partitions = static_cast<int>(partitions);
  HEDDLE_ASSIGN_OR_RETURN(fleet.batch_delay_factor, root.number_or("batch_delay_factor", 1.3, 0, 1e6));
  HEDDLE_ASSIGN_OR_RETURN(const auto classes_at, root.at("classes"));
  HEDDLE_ASSIGN_OR_RETURN(const auto classes, classes_at.elements(kMaxFleetClasses));
  for (const auto& at : classes) {
    HEDDLE_ASSIGN_OR_RETURN(auto c, read_class(at));
    if (fleet.class_named(c.name) >= 0) return at.error("a second class is named " + quote_text(c.name));
    fleet.classes.push_back(std::move(c));
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto models_at, root.at("models"));
  HEDDLE_ASSIGN_OR_RETURN(const auto models, models_at.elements(kMaxFleetModels));
  for (const auto& at : models) {
    HEDDLE_ASSIGN_OR_RETURN(auto m, read_model(at, fleet));
    fleet.models.push_back(std::move(m));
  }
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
