#include "output_check.h"

#include <algorithm>

namespace heddle {

Status note_comparison(const Graph& graph, std::span<const TensorView> outputs,
                       std::span<const TensorValue> expected, RunRecord& record) {
  if (expected.size() != graph.outputs().size() || outputs.size() != expected.size())
    return Error(Code::kInternal, "the plan's graph and the model differ in their outputs");
  if (!record.verified) {
    record.verified = record.outputs_equal = true;
    for (TensorId t : graph.outputs()) record.outputs_compared.push_back(graph.tensor(t).name);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const TensorDifference difference =
        compare_tensors(outputs[i], expected[i].view(), record.rtol, record.atol);
    record.outputs_equal &= difference.equal;
    record.max_abs_error = std::max(record.max_abs_error, difference.max_abs);
    record.max_rel_error = std::max(record.max_rel_error, difference.max_rel);
  }
  return {};
}

}  // namespace heddle
