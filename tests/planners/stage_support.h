// Stage instances for tests: random ones, the public HIOS simulation, and the optimum of tiny ones.
#pragma once

#include <optional>
#include <string>

#include "heddle/base/random.h"
#include "hios/stage_bound.h"
#include "hios/stage_instance.h"
#include "hios/stage_schedule.h"

namespace heddle::test {

struct RandomStages {
  size_t ops = 6, devices = 2, width = 2;
  double density = 0.3;  // of edges between earlier and later ops
  bool unequal = false;  // devices differ, some ops cannot run on some of them
  bool whole = false;    // whole numbers of us, so that ties are frequent
};
StageInstance random_stages(Random& random, const RandomStages& options);

// The part of t(S) that an op adds at least, in a stage of any size: the sum over a stage's ops is never
// above t(S).
double least_work_us(const StageInstance& instance, size_t op, size_t device);

// The bound from each op's least time and work over the devices, and each edge's cheapest way.
StageBound bound_of(const StageInstance& instance, double upper_us);

// A random valid schedule: ops in a random topological order, appended or joined where they may.
StageSchedule random_schedule(Random& random, const StageInstance& instance);

// hios/sim/sim_SEED.json of the public data on `devices` equal devices; nullopt when HEDDLE_SHARED does not
// lead to it. Times in us. by_source: transfers are a share of the producer's time (the paper's words), else
// of the consumer's.
std::optional<StageInstance> hios_sim(int seed, size_t devices, bool by_source = true);

// The least makespan over all mappings, orders and stages, by trying all: for at most 6 ops.
double brute_force_stages(const StageInstance& instance);

}  // namespace heddle::test
