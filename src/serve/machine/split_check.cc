#include "split_check.h"

#include <algorithm>
#include <cmath>

#include "heddle/runtime/run.h"

namespace heddle {

ProbeRow probe_row(const std::vector<TensorValue>& inputs, const std::vector<TensorValue>& outputs) {
  ProbeRow row;
  for (const auto& t : inputs) row.inputs.push_back(t.data.get());
  for (const auto& t : outputs) row.outputs.push_back(t.data.get());
  return row;
}

Result<std::vector<TensorValue>> tensors_of(std::span<const TensorInfo> infos) {
  std::vector<TensorValue> values;
  for (const auto& info : infos) {
    HEDDLE_ASSIGN_OR_RETURN(auto value, make_tensor(info.dtype, info.row));
    values.push_back(std::move(value));
  }
  return values;
}

TensorGap relative_difference(const TensorView& actual, const TensorView& expected) {
  if (dtype_bits(expected.dtype) < 8) return {};
  const int64_t count = expected.bytes / (dtype_bits(expected.dtype) / 8);
  double size = 0, largest = 0, sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double a = element_as_double(actual, i), b = element_as_double(expected, i);
    if (std::isfinite(b)) size = std::max(size, std::abs(b));
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (!std::isfinite(a) || !std::isfinite(b)) return {INFINITY, INFINITY};
    largest = std::max(largest, std::abs(a - b));
    sum += std::abs(a - b);
  }
  if (largest == 0) return {};
  return {largest / size, sum / static_cast<double>(count) / size};
}

void keep_worst(TensorGap& worst, const TensorGap& more) {
  worst.largest = std::max(worst.largest, more.largest);
  worst.mean = std::max(worst.mean, more.mean);
}

Status run_whole(PlanRunner& whole, const LocalModel& model, std::vector<TensorValue>& inputs,
                 std::vector<TensorValue>& outputs) {
  HEDDLE_ASSIGN_OR_RETURN(inputs, tensors_of(model.served.inputs));
  HEDDLE_ASSIGN_OR_RETURN(outputs, tensors_of(model.served.outputs));
  uint64_t seed = 0x5f;
  for (const auto& t : inputs) fill_random(t.view(), seed++);
  auto row = probe_row(inputs, outputs);
  LiveRequest* const batch[] = {&row};
  return whole.run(batch);
}

Result<TensorGap> run_split(std::span<PlanRunner* const> parts, const LocalModel& model,
                            const std::vector<TensorValue>& inputs, const std::vector<TensorValue>& outputs) {
  HEDDLE_ASSIGN_OR_RETURN(const auto own, tensors_of(model.served.outputs));
  auto row = probe_row(inputs, own);
  LiveRequest* const batch[] = {&row};
  for (auto* part : parts) HEDDLE_RETURN_IF_ERROR(part->run(batch));
  TensorGap worst;
  for (size_t i = 0; i < own.size(); ++i)
    keep_worst(worst, relative_difference(own[i].view(), outputs[i].view()));
  return worst;
}

}  // namespace heddle
