#include "border_types.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "heddle/graph/model.h"
#include "heddle/graph/narrow.h"
#include "heddle/runtime/backend.h"
#include "program.h"

namespace heddle {

Result<std::vector<std::shared_ptr<const Graph>>> lane_graphs(const Problem& problem, const Model* model,
                                                              const Plan& plan,
                                                              std::span<const DType> of_device) {
  const Graph& graph = *problem.graph;
  std::vector<std::shared_ptr<const Graph>> graphs(plan.lane_shares.size());
  std::vector<DType> counted, own;
  std::vector<bool> stays(graph.num_tensors(), false);
  for (const Tensor& t : graph.tensors()) counted.push_back(t.dtype);
  for (const TensorId t : graph.outputs()) stays[t.index()] = true;
  own = counted;
  // Both ends of a border have to agree, so what one backend holds in float32 is so on all devices.
  std::vector<WideValues> wide;
  std::set<std::string> asked;
  for (size_t d = 0; model != nullptr && d < of_device.size(); ++d) {
    const Backend* backend = find_backend(problem.cluster->devices()[d].backend);
    if (of_device[d] != DType::kF32 && backend != nullptr && asked.insert(backend->name()).second)
      wide.push_back(backend->wide_values(*model->graph()));
  }
  for (size_t t = 0; model != nullptr && t < own.size(); ++t) {
    const TensorId same = model->graph()->find_tensor(graph.tensors()[t].name);
    if (!same.valid()) continue;
    own[t] = model->graph()->tensor(same).dtype;
    stays[t] = stays[t] || std::ranges::any_of(wide, [&](const WideValues& w) { return w.is_wide(same); });
  }
  std::map<std::vector<DType>, std::shared_ptr<const Graph>> made{{counted, problem.graph}};
  const auto owner = ops_to_segments(problem, plan);
  for (size_t lane = 0; lane < graphs.size(); ++lane) {
    const auto type_at = [&](OpId op) {
      return of_device[plan.segments[static_cast<size_t>(owner[lane][op.index()])].device.index()];
    };
    std::vector<DType> types = own;
    for (size_t t = 0; t < types.size(); ++t) {
      const Tensor& tensor = graph.tensors()[t];
      if (own[t] != DType::kF32 || !tensor.producer.valid() || stays[t]) continue;
      const DType type = type_at(tensor.producer);
      if (std::ranges::all_of(tensor.consumers, [&](OpId reader) { return type_at(reader) == type; }))
        types[t] = type;
    }
    std::shared_ptr<const Graph>& typed = made[types];
    if (typed == nullptr) {
      HEDDLE_ASSIGN_OR_RETURN(typed, with_tensor_types(graph, types));
    }
    graphs[lane] = typed;
  }
  return graphs;
}

std::vector<SegmentTensor> segment_tensors(const Graph& graph, std::span<const TensorId> tensors) {
  std::vector<SegmentTensor> list;
  for (const TensorId t : tensors) {
    const Tensor& tensor = graph.tensor(t);
    list.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.bytes});
  }
  return list;
}

}  // namespace heddle
