// The sizes of one request's rows: as they came and go back, and as they run.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/runtime/tensor.h"
#include "heddle/serve/infer_message.h"
#include "heddle/serve/served_model.h"

namespace heddle {

class RequestSizes {
 public:
  // Of a model whose requests all have one shape.
  explicit RequestSizes(const ServedModel& model) : model_(&model) {}
  // Of a model of varying shapes: `inputs` are those of a row. Errors (invalid input): no bucket holds them, or
  // the model does not take them; the message has the reason.
  static Result<RequestSizes> of_varying(const ServedModel& model, std::vector<Shape> inputs);

  uint32_t bucket() const { return bucket_; }
  bool pads() const { return pads_; }
  // Set where the model runs at the rows' own shapes.
  bool at_own() const { return at_own_; }
  const std::vector<Shape>& own_inputs() const { return inputs_; }
  const std::vector<Shape>& own_outputs() const { return outputs_; }

  // Of a row, in bytes: as it came, and as the devices read and write it.
  int64_t input_bytes(size_t input) const;
  int64_t run_input_bytes(size_t input) const;
  int64_t run_output_bytes(size_t output) const;
  // The output's shape as the devices write it, of a row.
  const Shape& run_output(size_t output) const;

  // `rows` rows of an input as large as the bucket.
  Result<TensorValue> pad(size_t input, const InferTensor& tensor, int64_t rows) const;
  // Cuts `rows` rows of an output, of the bucket's size, back to their own.
  Status cut(size_t output, int64_t rows, InferTensor& tensor) const;
  // A size that padding leaves as it is needs no cut.
  bool is_cut(size_t output) const { return pads_ && outputs_[output] != run_output(output); }

 private:
  const ServedBucket* bucket_of() const {
    return model_->varying ? &model_->varying->buckets[bucket_] : nullptr;
  }

  const ServedModel* model_;  // outlives this
  uint32_t bucket_ = 0;
  bool pads_ = false, at_own_ = false;
  std::vector<Shape> inputs_, outputs_;  // of a row, of models of varying shapes
};

}  // namespace heddle
