#include "request_sizes.h"

#include <algorithm>
#include <functional>
#include <string>

#include "heddle/runtime/padding.h"

namespace heddle {
namespace {

bool holds(const ServedBucket& bucket, const std::vector<Shape>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!std::equal(inputs[i].begin(), inputs[i].end(), bucket.inputs[i].begin(), bucket.inputs[i].end(),
                    std::less_equal<>()))
      return false;
  return true;
}

std::string bucket_names(const VaryingShapes& varying) {
  std::string text;
  for (const auto& b : varying.buckets) text += (text.empty() ? "" : ", ") + b.name;
  return text;
}

Shape with_rows(Shape row, bool batched, int64_t rows) {
  if (batched) row.insert(row.begin(), rows);
  return row;
}

// With one row, as the buckets' names have it.
std::string inputs_text(const ServedModel& model, const std::vector<Shape>& inputs) {
  std::string text;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!model.inputs[i].state)
      text += (text.empty() ? "'" : ", '") + model.inputs[i].name + "' of shape " +
              shape_text(with_rows(inputs[i], model.batched, 1));
  return text;
}

int64_t bytes_of(DType dtype, const Shape& shape) { return tensor_bytes(dtype, shape).value_or(0); }

}  // namespace

Result<RequestSizes> RequestSizes::of_varying(const ServedModel& model, std::vector<Shape> inputs) {
  const auto& varying = *model.varying;
  const auto bad = [&model](const std::string& what) {
    return invalid_input("model '" + model.name + "': " + what);
  };
  RequestSizes sizes(model);
  const auto& buckets = varying.buckets;
  const auto bucket =
      std::find_if(buckets.begin(), buckets.end(), [&inputs](const auto& b) { return holds(b, inputs); });
  if (bucket == buckets.end())
    return bad(
        inputs_text(model, inputs) +
        (std::ranges::count(model.inputs, false, &TensorInfo::state) > 1 ? " fit in none" : " fits in none") +
        " of its buckets: " + bucket_names(varying) +
        "; send smaller inputs, or serve it with a larger bucket");
  sizes.bucket_ = static_cast<uint32_t>(bucket - buckets.begin());
  const bool exact = inputs == bucket->inputs;
  sizes.inputs_ = std::move(inputs);
  sizes.at_own_ = varying.smaller == SmallerRuns::kAtOwn;
  if (exact) {
    sizes.outputs_ = bucket->outputs;
    return sizes;
  }
  if (varying.smaller == SmallerRuns::kRefused)
    return bad(inputs_text(model, sizes.inputs_) + " is none of its buckets: " + bucket_names(varying) +
               "; " + varying.refusal);
  auto outputs = varying.output_rows(sizes.inputs_);
  if (!outputs.ok())
    return bad(inputs_text(model, sizes.inputs_) +
               ": the model does not take it: " + outputs.error().message());
  sizes.outputs_ = std::move(*outputs);
  sizes.pads_ = varying.smaller == SmallerRuns::kPadded;
  // A size that depends on data has the bucket's limit, and an output of its own for the true shape. The engine may
  // also not tell a size ahead that is the same for all, such as the batch's.
  for (size_t o = 0; o < sizes.outputs_.size(); ++o) {
    auto& shape = sizes.outputs_[o];
    const auto& limit = bucket->outputs[o];
    for (size_t d = 0; d < shape.size() && d < limit.size(); ++d)
      if (shape[d] < 0) shape[d] = limit[d];
  }
  return sizes;
}

int64_t RequestSizes::input_bytes(size_t input) const {
  const auto& info = model_->inputs[input];
  return model_->varying ? bytes_of(info.dtype, inputs_[input]) : info.row_bytes;
}

int64_t RequestSizes::run_input_bytes(size_t input) const {
  return pads_ ? bytes_of(model_->inputs[input].dtype, bucket_of()->inputs[input]) : input_bytes(input);
}

const Shape& RequestSizes::run_output(size_t output) const {
  const auto* bucket = bucket_of();
  if (bucket == nullptr) return model_->outputs[output].row;
  return at_own_ ? outputs_[output] : bucket->outputs[output];
}

int64_t RequestSizes::run_output_bytes(size_t output) const {
  const auto& info = model_->outputs[output];
  return model_->varying ? bytes_of(info.dtype, run_output(output)) : info.row_bytes;
}

Result<TensorValue> RequestSizes::pad(size_t input, const InferTensor& tensor, int64_t rows) const {
  // The view is only read.
  const TensorView view{tensor.dtype, tensor.shape, const_cast<std::byte*>(tensor.data), tensor.bytes};
  return padded(view, with_rows(bucket_of()->inputs[input], model_->batched, rows),
                model_->varying->pad[input]);
}

Status RequestSizes::cut(size_t output, int64_t rows, InferTensor& tensor) const {
  const TensorView whole{tensor.dtype, tensor.shape, const_cast<std::byte*>(tensor.data), tensor.bytes};
  HEDDLE_ASSIGN_OR_RETURN(TensorValue part,
                          front_corner(whole, with_rows(outputs_[output], model_->batched, rows)));
  tensor.shape = part.shape;
  tensor.bytes = part.bytes;
  tensor.data = part.data.get();
  tensor.owner = std::shared_ptr<const void>(part.data, part.data.get());
  return {};
}

}  // namespace heddle
