// Reads clusters. Cluster files write a quantity as they like ("memory: 16GiB"); the clusters inside plan files
// have it in a base unit that its key names ("memory_bytes": 17179869184).
#include <algorithm>
#include <unordered_map>

#include "heddle/base/fields.h"
#include "heddle/base/numbers.h"
#include "heddle/base/spelling.h"
#include "heddle/cluster/cluster_yaml.h"
#include "heddle/cluster/variants.h"
#include "heddle/cluster/yaml_json.h"
#include "names.h"
#include "presets.h"
#include "validate.h"

namespace heddle {
namespace {

Result<std::string> name_at(const JsonCursor& at) {
  HEDDLE_ASSIGN_OR_RETURN(std::string name, at.as_string());
  if (name.empty() || name.size() > kMaxNameBytes)
    return at.error("is a name of " + std::to_string(name.size()) + " bytes, expected 1 to " +
                    std::to_string(kMaxNameBytes));
  return name;
}

// Numbers are written as text, too.
std::string written(const JsonCursor& at) {
  return at.value().is_string() ? at.value().get<std::string>() : json_text(at.value());
}

std::optional<int> whole_number(std::string_view text, int most) {
  const auto value = parse_number<int>(text);
  return value && *value >= 0 && *value <= most ? value : std::nullopt;
}

// The name of a link, which may have none.
Result<std::string> name_or_none(const JsonCursor& at) {
  return at.value() == Json("") ? Result<std::string>(std::string()) : name_at(at);
}

// "3" or "0-2,8", or the number of one core.
Status add_cores(const JsonCursor& at, std::vector<int>& cores) {
  const std::string text = written(at);
  for (size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = text.find(',', begin);
    const auto range = std::string_view(text).substr(begin, end - begin);
    const size_t dash = range.find('-');
    const auto first = whole_number(range.substr(0, dash), kMaxCore);
    const auto last = dash == std::string::npos ? first : whole_number(range.substr(dash + 1), kMaxCore);
    if (!first || !last || *first > *last)
      return at.error("is " + at.describe() + ", expected core numbers from 0 to " +
                      std::to_string(kMaxCore) + " such as '0-3,8' or [0, 1]");
    for (int core = *first; core <= *last && cores.size() <= kMaxCore; ++core) cores.push_back(core);
  }
  return {};
}

// One of these, or a list of them.
Result<std::vector<int>> cores_at(const JsonCursor& at) {
  std::vector<int> cores;
  const auto add = [&cores](const JsonCursor& entry) { return add_cores(entry, cores); };
  HEDDLE_RETURN_IF_ERROR(at.value().is_array() ? each(add, kMaxCore + 1)(at) : add(at));
  return cores;
}

constexpr Unit kSpeedUnit = {parse_number<double>, "a number from 0 to 1e30"};

Result<int> copy_engines_at(const JsonCursor& at) {
  const auto engines = whole_number(written(at), 2);
  return engines ? Result<int>(*engines) : at.error("is " + at.describe() + ", expected 0, 1 or 2");
}

std::optional<std::string> known_backend(std::string_view name) {
  if (!is_engine(name)) return std::nullopt;
  return std::string(name);
}

Result<std::string> engine_at(const JsonCursor& at) {
  std::string engine;
  HEDDLE_RETURN_IF_ERROR(take(at, engine, known_backend, kEnginesText));
  return engine;
}

constexpr const char* kPrecisionsText = "'f32', 'tf32', 'bf16' or 'fp16'";

Result<Precision> precision_at(const JsonCursor& at) {
  Precision precision{};
  HEDDLE_RETURN_IF_ERROR(take(at, precision, precision_from_name, kPrecisionsText));
  return precision;
}

// The lists `engines` and `precisions`, of a device or of all.
struct Choice {
  std::vector<std::string> engines;
  std::vector<Precision> precisions;

  void read(Fields& f) {
    f.optional("engines",
               each([this](const JsonCursor& at) { return add(at, engines, engine_at(at)); }, kMaxVariants));
    f.optional(
        "precisions",
        each([this](const JsonCursor& at) { return add(at, precisions, precision_at(at)); }, kMaxVariants));
  }

 private:
  template <class T>
  Status add(const JsonCursor& at, std::vector<T>& list, Result<T> value) {
    if (!value.ok()) return std::move(value).error();
    if (std::find(list.begin(), list.end(), *value) != list.end())
      return at.error("is " + at.describe() + " for the second time; name it once");
    list.push_back(std::move(*value));
    return {};
  }
};

std::optional<Duplex> two_way_from_name(std::string_view name) {
  const auto duplex = duplex_from_name(name);
  return duplex == Duplex::kOneWay ? std::nullopt : duplex;
}

std::string_view key_of(const Fields& f, std::string_view key, std::string_view in_base_unit) {
  return f.has(in_base_unit) ? in_base_unit : key;
}

// Names of one kind of item.
template <class IdType>
class NameTable {
 public:
  explicit NameTable(std::string what) : what_(std::move(what)) {}

  Status add(const std::string& name, IdType id, const JsonCursor& at) {
    names_.push_back(name);
    if (ids_.emplace(name, id).second) return {};
    return at.error("a second " + what_ + " is named '" + name + "'; each needs a name of its own");
  }
  Result<IdType> find(const JsonCursor& at) const {
    HEDDLE_ASSIGN_OR_RETURN(const std::string name, name_at(at));
    const auto found = ids_.find(name);
    if (found != ids_.end()) return found->second;
    const std::string known = names_.empty() ? "the file has no " + what_ : "expected " + join_names(names_);
    return at.error("no " + what_ + " is named " + quote_text(name) + did_you_mean(name, names_) + "; " +
                    known);
  }

 private:
  std::string what_;
  std::unordered_map<std::string, IdType> ids_;
  std::vector<std::string> names_;
};

class ClusterReader {
 public:
  explicit ClusterReader(std::string name) : builder_(std::move(name)) {}

  void read(const JsonCursor& at, Fields& f) {
    const auto list = [&](std::string_view key, size_t max_size, auto read_entry) {
      // A YAML file may have the key of a list and nothing below it.
      if (f.has(key) && at.value()[key].is_null()) {
        f.ignored({key});
        return;
      }
      f.optional(key, each([&](const JsonCursor& entry) { return (this->*read_entry)(entry); }, max_size));
    };
    of_all_.read(f);
    list("hosts", kMaxNodes, &ClusterReader::read_host);
    list("devices", kMaxNodes, &ClusterReader::read_device);
    list("switches", kMaxNodes, &ClusterReader::read_switch);
    list("buses", kMaxLinks, &ClusterReader::read_bus);
    list("links", kMaxLinks, &ClusterReader::read_link);
    list("nics", kMaxLinks, &ClusterReader::read_nic);
    join_cards_ = !f.has("links") && !f.has("buses");
  }

  Result<std::shared_ptr<const Cluster>> build(const JsonCursor& at) {
    if (num_hosts_ == 0) return at.error("the cluster has no host; add one under 'hosts'");
    if (join_cards_) join_cards();
    for (Device& variant : variants_) builder_.add_device(std::move(variant));
    auto cluster = builder_.build();
    if (!cluster.ok()) return std::move(cluster).error().with_context(at.path());
    return cluster;
  }

 private:
  Status read_host(const JsonCursor& at) {
    Fields f(at);
    Host host;
    f.required("name", host.name, name_at);
    f.optional(key_of(f, "memory", "memory_bytes"), host.memory_bytes, kBytesUnit);
    HEDDLE_RETURN_IF_ERROR(f.finish());
    const std::string name = host.name;
    const HostId id = builder_.add_host(std::move(host));
    ++num_hosts_;
    HEDDLE_RETURN_IF_ERROR(hosts_.add(name, id, at));
    return nodes_.add(name, builder_.host_node(id), at);
  }

  // A variant that stands in the file by itself has what its physical device has, and what it says.
  Status read_variant(const JsonCursor& at) {
    Fields f(at);
    DeviceId base;
    f.required("variant_of", base, [this](const JsonCursor& name) { return devices_.find(name); });
    if (!f.ok()) return f.finish();
    Device d = read_[base.index()];
    d.variant_of = d.name;
    d.backend_device.clear();
    d.target.clear();
    read_engine(f, d);
    HEDDLE_RETURN_IF_ERROR(f.finish());
    return add(std::move(d), at);
  }

  // What a variant may have of its own.
  static void read_engine(Fields& f, Device& d) {
    f.required("name", d.name, name_at)
        .optional("class", d.device_class, name_at)
        .optional("flops", d.peak_flops, kFlopsUnit)
        .optional(key_of(f, "memory_bandwidth", "memory_bytes_per_s"), d.memory_bytes_per_s,
                  kBytesPerSecondUnit)
        .optional(key_of(f, "op_overhead", "op_overhead_us"), d.op_overhead_us, kMicrosecondsUnit)
        .optional("speed", d.speed, kSpeedUnit)
        .optional("backend", d.backend, known_backend, kEnginesText)
        .optional("backend_device", d.backend_device, name_at)
        .optional("precision", d.precision, precision_from_name, kPrecisionsText)
        .optional("target", d.target, name_at);
    d.fixed_precision = f.has("precision");
  }

  Status add(Device d, const JsonCursor& at) {
    if (const auto valid = check_device(d, num_hosts_); !valid.ok()) return at.error(valid.error().message());
    read_.push_back(d);
    const std::string name = d.name;
    const DeviceId id = builder_.add_device(std::move(d));
    HEDDLE_RETURN_IF_ERROR(devices_.add(name, id, at));
    return nodes_.add(name, builder_.device_node(id), at);
  }

  // Engines and precisions of a device: the first of each become its own, the others variants. What the device
  // says has precedence over what the file says for all.
  Status choose(const JsonCursor& at, Device& d, const Choice& own) {
    const bool says_engine = at.has("backend"), says_precision = at.has("precision");
    if (says_engine && !own.engines.empty())
      return at.error("has both 'backend' and 'engines'; keep one of them");
    if (says_precision && !own.precisions.empty())
      return at.error("has both 'precision' and 'precisions'; keep one of them");
    // Only these can have several.
    const bool core_set = d.kind == DeviceKind::kCpu && !d.cores.empty();
    std::vector<std::string> engines = own.engines;
    if (engines.empty() && !says_engine && core_set) engines = of_all_.engines;
    if (engines.empty()) engines = {d.backend};
    std::vector<Precision> precisions = own.precisions;
    if (precisions.empty() && !says_precision && core_set) precisions = of_all_.precisions;
    if (precisions.empty())
      precisions = {d.precision};
    else
      d.fixed_precision = true;
    const bool usual = engines.front() == d.backend && precisions.front() == Precision::kF32;
    d.backend = engines.front();
    // A target names engine and precision, too.
    if (!usual) d = as_variant(std::move(d), {engines.front(), precisions.front()});
    for (const auto& engine : engines) {
      for (const Precision precision : precisions) {
        const Variant variant{engine, precision};
        if (!(variant == variant_of(d))) variants_.push_back(variant_beside(d, variant));
      }
    }
    return {};
  }

  Status read_device(const JsonCursor& at) {
    if (at.has("variant_of")) return read_variant(at);
    Fields f(at);
    Device d;
    Choice own;
    const CatalogueDevice* card = card_at(at);
    if (card != nullptr) d = make_device(*card, "", HostId());
    read_engine(f, d);
    constexpr const char* kKinds = "'cpu', 'gpu', 'npu' or 'fpga'";
    if (card == nullptr && at.has("class") && !at.has("kind")) return kind_missing(at);
    if (card != nullptr)
      f.optional("kind", d.kind, device_kind_from_name, kKinds);
    else
      f.required("kind", d.kind, device_kind_from_name, kKinds);
    f.optional("host", d.host, [this](const JsonCursor& host) { return hosts_.find(host); })
        .optional(key_of(f, "memory", "memory_bytes"), d.memory_bytes, kBytesUnit)
        .optional("cores", d.cores, cores_at)
        .optional("copy_engines", d.copy_engines, copy_engines_at);
    own.read(f);
    HEDDLE_RETURN_IF_ERROR(f.finish());
    if (!d.host.valid()) {
      if (num_hosts_ != 1)
        return at.error("the device '" + d.name + "' names no host; with " + std::to_string(num_hosts_) +
                        " hosts in the file, 'host' is required");
      d.host = HostId(0);
    }
    HEDDLE_RETURN_IF_ERROR(choose(at, d, own));
    if (card != nullptr && !at.has("flops")) d.peak_flops = peak_flops(*card, d.precision);
    if (card != nullptr) cards_.emplace_back(DeviceId(read_.size()), card);
    return add(std::move(d), at);
  }

  // The row of the catalogue that the class names; it stands for what the file does not say.
  static const CatalogueDevice* card_at(const JsonCursor& at) {
    const auto& value = at.value();
    const auto named = value.find("class");
    return named != value.end() && named->is_string() ? find_in_catalogue(named->get<std::string>())
                                                      : nullptr;
  }

  // The class would have brought the kind if the catalogue had it.
  static Error kind_missing(const JsonCursor& at) {
    std::vector<std::string> known;
    for (const auto& row : device_catalogue()) known.emplace_back(row.name);
    const Json& named = at.value().at("class");
    const std::string name = named.is_string() ? named.get<std::string>() : named.dump();
    return at.error("the key 'kind' is missing, and the catalogue has no class " + quote_text(name) +
                    did_you_mean(name, known) + "; `heddle devices --catalogue` lists its classes");
  }

  // A file without links: each card of the catalogue has a PCIe link of its own. A CPU needs none.
  void join_cards() {
    for (const auto& [device, card] : cards_)
      if (card->link_bytes_per_s > 0)
        add_pcie(builder_, device, read_[device.index()].host, card->link_bytes_per_s, {});
  }

  Status read_switch(const JsonCursor& at) {
    HEDDLE_ASSIGN_OR_RETURN(const std::string name, name_at(at));
    return nodes_.add(name, builder_.add_switch(name), at);
  }

  Status read_bus(const JsonCursor& at) {
    Fields f(at);
    Bus bus;
    f.required("name", bus.name, name_at)
        .optional(key_of(f, "bandwidth", "bytes_per_s"), bus.bytes_per_s, kBytesPerSecondUnit)
        .optional("duplex", bus.duplex, two_way_from_name, "'full' or 'half'");
    HEDDLE_RETURN_IF_ERROR(f.finish());
    const std::string name = bus.name;
    return buses_.add(name, builder_.add_bus(std::move(bus)), at);
  }

  Status read_link(const JsonCursor& at) {
    return read_connection(at, "from", "to", duplex_from_name, "'full', 'half' or 'one-way'");
  }

  // A NIC is a link between a host's memory and the switch that represents its network.
  Status read_nic(const JsonCursor& at) {
    return read_connection(at, "host", "network", two_way_from_name, "'full' or 'half'");
  }

  Status read_connection(const JsonCursor& at, const char* from, const char* to,
                         std::optional<Duplex> (*duplex)(std::string_view), const char* expected) {
    const auto node = [this](const JsonCursor& end) { return nodes_.find(end); };
    Fields f(at);
    Link link;
    f.optional("name", link.name, name_or_none)
        .required(from, link.a, node)
        .required(to, link.b, node)
        .required(key_of(f, "bandwidth", "bytes_per_s"), link.bytes_per_s, kBytesPerSecondUnit)
        .optional(key_of(f, "latency", "latency_us"), link.latency_us, kMicrosecondsUnit)
        .optional("duplex", link.duplex, duplex, expected)
        .optional("bus", link.bus, [this](const JsonCursor& bus) { return buses_.find(bus); });
    HEDDLE_RETURN_IF_ERROR(f.finish());
    if (link.a == link.b) return at.error("the link joins a node with itself; name two ends");
    if (link.bytes_per_s == 0) return at.error("the link has the bandwidth 0; expected one above 0");
    const std::string name = link.name;
    const LinkId id = builder_.add_link(std::move(link));
    return name.empty() ? Status() : links_.add(name, id, at);
  }

  ClusterBuilder builder_;
  size_t num_hosts_ = 0;
  Choice of_all_;
  bool join_cards_ = false;
  std::vector<std::pair<DeviceId, const CatalogueDevice*>> cards_;
  std::vector<Device> read_;      // as the file has them, by id
  std::vector<Device> variants_;  // by lists; they come after the file's devices
  NameTable<HostId> hosts_{"host"};
  NameTable<DeviceId> devices_{"device"};
  NameTable<NodeId> nodes_{"host, device or switch"};
  NameTable<BusId> buses_{"bus"};
  NameTable<LinkId> links_{"link"};
};

}  // namespace

Result<std::shared_ptr<const Cluster>> cluster_from_json(const JsonCursor& at) {
  Fields f(at);
  std::string name;
  f.required("name", name, name_at);
  ClusterReader reader(std::move(name));
  reader.read(at, f);
  HEDDLE_RETURN_IF_ERROR(f.finish());
  return reader.build(at);
}

Result<std::shared_ptr<const Cluster>> parse_cluster_yaml(std::string_view text, const std::string& source) {
  HEDDLE_ASSIGN_OR_RETURN(const auto document,
                          parse_yaml_as_json(text, source, "cluster", PlainScalars::kText));
  auto cluster = cluster_from_json(JsonCursor(document.json));
  if (!cluster.ok()) return with_yaml_place(std::move(cluster).error(), document, source);
  return cluster;
}

}  // namespace heddle
