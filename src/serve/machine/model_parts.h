// A fleet's model files as they are loaded and compiled here, by content: what is still in use is shared.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"
#include "heddle/fleet/fleet.h"
#include "plan_runner.h"

namespace heddle {

// The ops of the blocks block_from .. block_to - 1, ascending.
std::vector<OpId> ops_of_blocks(const FleetModelFile& file, int block_from, int block_to);

// One thread at a time.
class ModelParts {
 public:
  // The model at the batch sizes 1 .. max_batch. Errors: a file that is not there, is another one than was
  // profiled, or does not have batches of that size.
  Result<std::shared_ptr<const LocalModel>> load(const std::string& name, const FleetModelFile& file,
                                                 int max_batch);
  // Blocks of a model that load() gave.
  Result<std::shared_ptr<PlanRunner>> part(const std::shared_ptr<const LocalModel>& model,
                                           const FleetModelFile& file, int block_from, int block_to,
                                           const Device& device, double slowdown);

 private:
  struct Loaded {
    FleetModelFile file;
    int max_batch = 0;
    std::weak_ptr<const LocalModel> model;
  };
  // What a compiled part is known by. A part that is in use keeps its model, so that no other has its place.
  using Key = std::tuple<const LocalModel*, std::vector<OpId>, std::string, std::vector<int>, Precision, bool,
                         double>;

  void forget_unused();

  std::vector<Loaded> models_;
  std::map<Key, std::weak_ptr<PlanRunner>> parts_;
};

}  // namespace heddle
