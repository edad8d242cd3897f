#include "heddle/fleet/fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "heddle/base/spelling.h"

namespace heddle {
namespace {

constexpr double kMaxNumber = 1e15;  // limit of times, sizes, rates: their sums stay exact enough to compare

Error bad(std::string message) { return {Code::kInvalidInput, std::move(message)}; }

std::string shown(double v) { return std::isnan(v) ? "NaN" : fmt::format("{:.6g}", v); }

// `zero`: true if v may be 0.
Status check_number(double v, bool zero, const std::string& where, const char* what) {
  if (std::isfinite(v) && v <= kMaxNumber && (zero ? v >= 0 : v > 0)) return {};
  return bad(where + ": " + what + " is " + shown(v) + "; expected a number " +
             (zero ? "from 0" : "above 0") + " to 1e15");
}

Status check_count(int64_t v, int64_t min, int64_t max, const std::string& where, const char* what) {
  if (v >= min && v <= max) return {};
  return bad(where + ": " + what + " is " + std::to_string(v) + "; expected " + std::to_string(min) + " to " +
             std::to_string(max));
}

Status check_name(const std::string& name, const char* kind, std::set<std::string>& seen) {
  if (name.empty()) return bad(std::string("a ") + kind + " has an empty name");
  if (name.size() > kMaxFleetNameBytes)
    return bad(std::string("the ") + kind + " " + quote_text(name) + " has a name over " +
               std::to_string(kMaxFleetNameBytes) + " bytes");
  if (!is_printable(name))
    return bad(std::string("the ") + kind + " " + quote_text(name) +
               " has a name with control characters or bytes that are not UTF-8");
  if (!seen.insert(name).second) return bad(std::string("two ") + kind + "s are named " + quote_text(name));
  return {};
}

Status check_class(const DeviceClass& c) {
  const auto where = "class " + quote_text(c.name);
  HEDDLE_RETURN_IF_ERROR(check_count(c.count, 0, kMaxFleetDevices, where, "count"));
  HEDDLE_RETURN_IF_ERROR(check_count(c.share_levels, 1, kMaxShare, where, "share_levels"));
  HEDDLE_RETURN_IF_ERROR(check_count(c.devices_per_server, 1, 1024, where, "devices_per_server"));
  HEDDLE_RETURN_IF_ERROR(check_number(c.nic_bytes_per_s, false, where, "nic_bytes_per_s"));
  HEDDLE_RETURN_IF_ERROR(check_number(c.cost_per_hour, true, where, "cost_per_hour"));
  HEDDLE_RETURN_IF_ERROR(check_number(c.watts, true, where, "watts"));
  for (const auto& device : c.devices)
    if (!is_printable(device))
      return bad(where + ": the device " + quote_text(device) + " is no printable text");
  if (!c.devices.empty())
    HEDDLE_RETURN_IF_ERROR(check_count(c.count, 0, static_cast<int64_t>(c.devices.size()), where,
                                       "count, with the devices named,"));
  if (!(c.slowdown >= 1 && c.slowdown <= 1000))
    return bad(where + ": slowdown is " + shown(c.slowdown) + "; expected 1 to 1000");
  return check_count(c.memory_bytes, 0, int64_t{1} << 50, where, "memory_bytes");
}

Status check_times(const Fleet& fleet, const FleetModel& m, const std::string& where) {
  if (m.latency_us.size() != fleet.classes.size())
    return bad(where + ": has times for " + std::to_string(m.latency_us.size()) + " classes; the fleet has " +
               std::to_string(fleet.classes.size()));
  size_t values = 0;
  for (size_t c = 0; c < m.latency_us.size(); ++c) {
    const auto on = where + " on class " + quote_text(fleet.classes[c].name);
    if (m.latency_us[c].size() > static_cast<size_t>(kMaxShare))
      return bad(on + ": times for more than " + std::to_string(kMaxShare) + " shares");
    for (size_t v = 0; v < m.latency_us[c].size(); ++v) {
      const auto& batches = m.latency_us[c][v];
      if (batches.size() > static_cast<size_t>(kMaxFleetBatch))
        return bad(on + ": times for more than " + std::to_string(kMaxFleetBatch) + " batch sizes");
      for (size_t b = 0; b < batches.size(); ++b) {
        const auto at = on + ", share 1/" + std::to_string(v + 1) + ", batch " + std::to_string(b + 1);
        if (batches[b].size() != static_cast<size_t>(m.blocks))
          return bad(at + ": times of " + std::to_string(batches[b].size()) + " blocks; the model has " +
                     std::to_string(m.blocks));
        for (size_t k = 0; k < batches[b].size(); ++k) {
          const auto block = at + ", block " + std::to_string(k);
          HEDDLE_RETURN_IF_ERROR(check_number(batches[b][k], false, block, "the time in us"));
        }
        values += batches[b].size();
      }
    }
  }
  if (values == 0) return bad(where + ": there is no time on any class; expected latency_us of at least one");
  return {};
}

Status check_sources(const Fleet& fleet, const FleetModel& m, const std::string& where) {
  if (m.times_from.empty()) return {};
  if (m.times_from.size() != fleet.classes.size())
    return bad(where + ": says of " + std::to_string(m.times_from.size()) +
               " classes where their times are from; the fleet has " + std::to_string(fleet.classes.size()));
  for (size_t c = 0; c < m.times_from.size(); ++c) {
    const double factor = m.times_from[c] ? m.times_from[c]->error_factor : 1;
    if (!(factor >= 1 && factor <= 1000))
      return bad(where + " on class " + quote_text(fleet.classes[c].name) + ": error_factor is " +
                 shown(factor) + "; expected 1 to 1000");
  }
  return {};
}

// "3 %", "a factor of 2".
std::string band_text(double factor) {
  return factor < 1.5 ? fmt::format("{:.2g} %", 100 * (factor - 1))
                      : fmt::format("a factor of {:.2g}", factor);
}

Status check_model(const Fleet& fleet, const FleetModel& m) {
  const auto where = "model " + quote_text(m.name);
  HEDDLE_RETURN_IF_ERROR(check_count(m.blocks, 1, kMaxBlocks, where, "blocks"));
  HEDDLE_RETURN_IF_ERROR(check_number(m.slo_us, false, where, "slo_us"));
  HEDDLE_RETURN_IF_ERROR(check_number(m.margin_us, true, where, "margin_us"));
  if (m.margin_us >= m.slo_us)
    return bad(where + ": margin_us " + shown(m.margin_us) + " leaves nothing of slo_us " + shown(m.slo_us));
  HEDDLE_RETURN_IF_ERROR(check_number(m.weight, false, where, "weight"));
  HEDDLE_RETURN_IF_ERROR(check_number(m.estimated_rate_per_s, true, where, "estimated_rate_per_s"));
  if (m.cut_bytes.size() != static_cast<size_t>(m.blocks) + 1)
    return bad(where + ": cut_bytes has " + std::to_string(m.cut_bytes.size()) +
               " entries; expected blocks + 1 = " + std::to_string(m.blocks + 1));
  for (size_t k = 0; k < m.cut_bytes.size(); ++k)
    HEDDLE_RETURN_IF_ERROR(
        check_number(m.cut_bytes[k], true, where + ", cut " + std::to_string(k), "cut_bytes"));
  if (!m.parameter_bytes.empty() && m.parameter_bytes.size() != static_cast<size_t>(m.blocks))
    return bad(where + ": parameter_bytes has " + std::to_string(m.parameter_bytes.size()) +
               " entries; expected " + std::to_string(m.blocks) + " or none");
  for (size_t k = 0; k < m.parameter_bytes.size(); ++k)
    HEDDLE_RETURN_IF_ERROR(check_count(m.parameter_bytes[k], 0, int64_t{1} << 50,
                                       where + ", block " + std::to_string(k), "parameter_bytes"));
  if (!m.file.path.empty()) {
    if (m.file.block_of.empty()) return bad(where + ": file: which ops the blocks have is not said");
    for (const int block : m.file.block_of)
      if (block < 0 || block >= m.blocks)
        return bad(where + ": file: an op is in block " + std::to_string(block) +
                   "; the model has blocks 0 to " + std::to_string(m.blocks - 1));
  }
  HEDDLE_RETURN_IF_ERROR(check_sources(fleet, m, where));
  return check_times(fleet, m, where);
}

}  // namespace

double FleetModel::block_us(size_t device_class, int share, int batch, int block) const {
  if (batch < 1 || block < 0 || block >= blocks || batch > max_batch(device_class, share))
    return std::numeric_limits<double>::quiet_NaN();
  return latency_us[device_class][static_cast<size_t>(share - 1)][static_cast<size_t>(batch - 1)]
                   [static_cast<size_t>(block)];
}

int FleetModel::max_batch(size_t device_class, int share) const {
  if (device_class >= latency_us.size() || share < 1 ||
      static_cast<size_t>(share) > latency_us[device_class].size())
    return 0;
  return static_cast<int>(latency_us[device_class][static_cast<size_t>(share - 1)].size());
}

int64_t Fleet::devices() const {
  int64_t sum = 0;
  for (const auto& c : classes) sum += c.count;
  return sum;
}

int Fleet::class_named(std::string_view class_name) const {
  for (size_t c = 0; c < classes.size(); ++c)
    if (classes[c].name == class_name) return static_cast<int>(c);
  return -1;
}

int Fleet::model_named(std::string_view model_name) const {
  for (size_t m = 0; m < models.size(); ++m)
    if (models[m].name == model_name) return static_cast<int>(m);
  return -1;
}

std::string times_text(const Fleet& fleet) {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;  // source, classes
  for (size_t c = 0; c < fleet.classes.size(); ++c) {
    std::optional<TimesSource> worst;
    for (const auto& m : fleet.models) {
      if (c >= m.times_from.size() || !m.times_from[c]) continue;
      if (!worst) worst = m.times_from[c];
      worst->origin = std::max(worst->origin, m.times_from[c]->origin);
      worst->error_factor = std::max(worst->error_factor, m.times_from[c]->error_factor);
    }
    if (!worst) continue;
    const auto source =
        std::string(origin_name(worst->origin)) + " on {}, within " + band_text(worst->error_factor);
    auto at = std::ranges::find(groups, source, &decltype(groups)::value_type::first);
    if (at == groups.end()) at = groups.insert(groups.end(), {source, {}});
    at->second.push_back(fleet.classes[c].name);
  }
  std::string text;
  for (const auto& [source, classes] : groups) {
    std::string names;
    for (size_t i = 0; i < classes.size(); ++i)
      names += (i == 0 ? "" : i + 1 < classes.size() ? ", " : " and ") + classes[i];
    text += (text.empty() ? "" : "; ") + fmt::format(fmt::runtime(source), names);
  }
  return text;
}

Status check_fleet(const Fleet& fleet) {
  const auto classes = static_cast<int64_t>(fleet.classes.size());
  const auto models = static_cast<int64_t>(fleet.models.size());
  HEDDLE_RETURN_IF_ERROR(check_count(classes, 1, kMaxFleetClasses, "fleet", "the number of classes"));
  HEDDLE_RETURN_IF_ERROR(check_count(models, 1, kMaxFleetModels, "fleet", "the number of models"));
  HEDDLE_RETURN_IF_ERROR(check_count(fleet.max_partitions, 1, kMaxPartitions, "fleet", "max_partitions"));
  HEDDLE_RETURN_IF_ERROR(check_number(fleet.batch_delay_factor, true, "fleet", "batch_delay_factor"));
  std::set<std::string> class_names, model_names;
  for (const auto& c : fleet.classes) {
    HEDDLE_RETURN_IF_ERROR(check_name(c.name, "class", class_names));
    HEDDLE_RETURN_IF_ERROR(check_class(c));
  }
  if (fleet.devices() == 0)
    return bad("fleet: there is no device; expected a count above 0 in at least one class");
  for (const auto& m : fleet.models) {
    HEDDLE_RETURN_IF_ERROR(check_name(m.name, "model", model_names));
    HEDDLE_RETURN_IF_ERROR(check_model(fleet, m));
  }
  return {};
}

}  // namespace heddle
