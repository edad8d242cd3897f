// A fleet: many devices of a few classes, and the models that share them. A model consists of blocks, each
// timed per class, share and batch size, and has a deadline (PPipe, ATC'25, sections 3, 5, appendix A).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/json_fwd.h"
#include "heddle/base/status.h"
#include "heddle/cost/cost.h"
#include "heddle/graph/types.h"

namespace heddle {

// A device may be split into 1, 2, 3 or 4 equal virtual devices (PPipe, section 5.3).
inline constexpr int kMaxShare = 4;

struct DeviceClass {
  std::string name;
  int64_t count = 0;           // devices; 0: none at present
  int share_levels = 1;        // 1..kMaxShare: virtual devices of 1/1, 1/2, .. 1/share_levels
  int devices_per_server = 1;  // they share the server's NIC evenly
  double nic_bytes_per_s = 0;  // bandwidth of a server in each direction
  double cost_per_hour = 0;    // of one device, in any one currency
  double watts = 0;            // of one device
  int64_t memory_bytes = 0;    // of one device; a virtual device has its share of it; 0: no limit
  // The devices' names on this machine ("cpu0"), at least `count` of them, for models that really run from a
  // file. Empty: the devices are not on this machine.
  std::vector<std::string> devices;
  // Emulates slower devices on equal ones: each run is stretched to this multiple of its time by waiting.
  double slowdown = 1;
};

// Where a model comes from, for devices on this machine, and which of its ops belong to each block.
struct FleetModelFile {
  std::string path;                     // empty: none
  uint64_t hash = 0;                    // of the file's bytes, when the blocks were made
  std::map<std::string, Shape> shapes;  // of inputs with dynamic dimensions other than the batch
  std::vector<int> block_of;            // [op of Model::graph()]
  bool fp16_cuts = false;               // float32 tensors cross cuts as float16; cut_bytes are for float16
};

// Where the times of a model on a class come from.
struct TimesSource {
  Origin origin = Origin::kEstimated;  // of the least trusted time
  double error_factor = 1;             // the widest error band (Cost::error_factor())
};

struct FleetModel {
  std::string name;
  int blocks = 0;  // indices 0..blocks-1; cut k lies before block k
  // latency_us[class][share - 1][batch - 1][block]: time of a whole batch on a virtual device of 1/share,
  // with all shares of the device busy. Positive. A class that cannot run the model, a share or a batch size
  // without a time has an empty vector. Outer size: the fleet's classes.
  std::vector<std::vector<std::vector<std::vector<double>>>> latency_us;
  std::vector<std::optional<TimesSource>> times_from;  // [class]; empty, or nullopt for a class: not said
  std::vector<double> cut_bytes;  // per request; blocks + 1 entries, [0] the input, [blocks] the output
  std::vector<int64_t> parameter_bytes;  // of each block; empty: unknown, so memory is not checked
  double slo_us = 0;                     // from arrival to answer
  double margin_us = 0;                  // part of the SLO that the plan leaves free, for uneven arrivals
  double weight = 1;                     // share of the load, relative to the other models'
  double estimated_rate_per_s = 0;       // rate at which requests fill a batch; 0: filling takes no time
  FleetModelFile file;

  // Time of one block; NaN if there is none.
  double block_us(size_t device_class, int share, int batch, int block) const;
  // The largest batch size with times on this class and share.
  int max_batch(size_t device_class, int share) const;
};

struct Fleet {
  std::string name;
  std::vector<DeviceClass> classes;
  std::vector<FleetModel> models;
  int max_partitions = 2;           // of a pipeline
  double batch_delay_factor = 1.3;  // waiting for a batch of b takes factor * (b - 1) / estimated rate

  int64_t devices() const;                             // total of all classes
  int class_named(std::string_view class_name) const;  // -1: none
  int model_named(std::string_view model_name) const;  // -1: none
};

// "estimated on L4 and P4, within a factor of 2; measured on cpu1, within 3 %": the sources of all models' times, each
// class with the least trusted. Empty if the fleet does not say.
std::string times_text(const Fleet& fleet);

inline constexpr int kMaxFleetClasses = 16, kMaxFleetModels = 256, kMaxBlocks = 64, kMaxFleetBatch = 256;
inline constexpr int kMaxPartitions = 4;
inline constexpr size_t kMaxFleetNameBytes = 200;  // of a class or model
inline constexpr int64_t kMaxFleetDevices = 10'000'000;

// Checks that plans can be made for the fleet: names present and unique, sizes consistent, numbers finite and
// in range, at least one device and one model. The error names class, model and value. O(size).
Status check_fleet(const Fleet& fleet);

// Reads untrusted input strictly; every error names the place in the file. The returned fleet passes
// check_fleet().
Result<Fleet> fleet_from_json(const Json& json);
Json to_json(const Fleet& fleet);
// Reads .yaml and .yml as YAML (errors name file and line), all else as JSON. If the document has no name,
// the fleet gets the file's. Relative model paths are resolved against the file's folder.
Result<Fleet> read_fleet(const std::string& path);
// Writes YAML for the same suffixes, else JSON; atomic.
Status write_fleet(const std::string& path, const Fleet& fleet);

}  // namespace heddle
