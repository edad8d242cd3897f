// Random fleets, and the location of the public data.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "heddle/base/random.h"
#include "heddle/fleet/fleet.h"

namespace heddle {

// The folder with PPipe's public data, or "" if it is missing.
inline std::string ppipe_folder() {
  const char* shared = std::getenv("HEDDLE_SHARED");
  if (shared == nullptr) return "";
  const auto folder = std::filesystem::path(shared) / "data" / "ppipe";
  return std::filesystem::exists(folder / "block_timing.csv") ? folder.string() : "";
}

// Of an error that says which files it keeps: how their names begin.
inline std::string kept_files(const std::string& error) {
  const auto at = error.find("beyond-bound-");
  return at == std::string::npos ? "" : error.substr(at, std::string("beyond-bound-").size() + 16);
}

struct RandomFleetOptions {
  int classes = 2, models = 2, blocks = 4, max_count = 4, share_levels = 1, batches = 2, max_partitions = 2;
};

// Classes of different speed, models with different blocks, deadlines that some pipelines miss.
inline Fleet random_fleet(Random& random, const RandomFleetOptions& o) {
  Fleet fleet;
  fleet.name = "random";
  fleet.max_partitions = o.max_partitions;
  for (int c = 0; c < o.classes; ++c)
    fleet.classes.push_back({.name = "class" + std::to_string(c),
                             .count = random.between(1, o.max_count),
                             .share_levels = o.share_levels,
                             .devices_per_server = static_cast<int>(random.between(1, 4)),
                             .nic_bytes_per_s = random.uniform(1e8, 2e9),
                             .cost_per_hour = random.uniform(0.2, 3),
                             .watts = random.uniform(50, 300)});
  for (int m = 0; m < o.models; ++m) {
    FleetModel model;
    model.name = "model" + std::to_string(m);
    model.blocks = o.blocks;
    model.weight = random.uniform(0.5, 2);
    model.estimated_rate_per_s = random.chance(0.5) ? random.uniform(100, 1000) : 0;
    for (int k = 0; k <= o.blocks; ++k) model.cut_bytes.push_back(random.uniform(1e4, 3e6));
    model.latency_us.resize(static_cast<size_t>(o.classes));
    double fastest = 1e30;
    for (auto& of_class : model.latency_us) {
      const double speed = random.uniform(0.3, 3);
      std::vector<double> block;
      double sum = 0;
      for (int k = 0; k < o.blocks; ++k) {
        block.push_back(random.uniform(500, 3000) / speed);
        sum += block.back();
      }
      fastest = std::min(fastest, sum);
      for (int v = 1; v <= o.share_levels; ++v) {
        auto& of_share = of_class.emplace_back();
        for (int b = 1; b <= o.batches; ++b) {
          auto& times = of_share.emplace_back();
          for (const double t : block) times.push_back(t * (0.4 + 0.6 * b) * (0.3 + 0.7 * v));
        }
      }
    }
    model.slo_us = fastest * random.uniform(1.5, 8);
    model.margin_us = model.slo_us * random.uniform(0, 0.3);
    fleet.models.push_back(std::move(model));
  }
  return fleet;
}

}  // namespace heddle
