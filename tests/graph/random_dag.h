// Small random DAGs for property tests.
#pragma once

#include <memory>
#include <vector>

#include "heddle/base/random.h"
#include "heddle/graph/graph.h"

namespace heddle {

// Each earlier op is a predecessor of an op with probability edge_probability.
inline std::shared_ptr<const Graph> generate_random_dag(int ops, double edge_probability, uint64_t seed) {
  Random random(seed);
  GraphBuilder builder("dag-" + std::to_string(ops) + "-" + std::to_string(seed));
  std::vector<TensorId> made;
  for (int i = 0; i < ops; ++i) {
    Op op;
    op.name = "op" + std::to_string(i);
    op.type = "Random";
    for (int j = 0; j < i; ++j) {
      if (random.chance(edge_probability)) op.inputs.push_back(made[static_cast<size_t>(j)]);
    }
    op.flops = static_cast<double>(random.between(1, 1000)) * 1e6;
    Tensor out;
    out.name = "t" + std::to_string(i);
    out.shape = {random.between(1, 4096) * 64};
    const auto param = builder.add_param({"w" + std::to_string(i), random.between(0, 1 << 20)});
    op.params = {param};
    op.given_times = {{"*", static_cast<double>(random.between(1, 1000))}};
    op.bytes_accessed = out.shape[0] * 4;
    const auto id = builder.add_op(std::move(op), {std::move(out)});
    made.push_back(builder.outputs_of(id)[0]);
  }
  // Cannot fail: all parts are valid and in topological order.
  auto graph = builder.build();
  return graph.ok() ? std::move(graph).value() : nullptr;
}

}  // namespace heddle
