// Whether a request is one that a model can be asked.
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/serve/infer_message.h"
#include "heddle/serve/served_model.h"

namespace heddle {

// The request's inputs in the model's order, and its number of rows.
struct CheckedRequest {
  std::vector<const InferTensor*> inputs;  // null for a session's state
  std::vector<size_t> outputs;             // wanted, as indices into the model's
  std::vector<size_t> shapes;              // the true shapes of wanted outputs, likewise
  int64_t rows = 1;
  std::vector<Shape> input_shapes;  // of a model of varying shapes: of a row of each input
};

// Errors (invalid input) name the model and the tensor, and what was expected.
Result<CheckedRequest> check_request(const ServedModel& m, const InferRequest& r);

// May a row that was checked against the one be run by the other?
bool same_rows(const ServedModel& a, const ServedModel& b);

}  // namespace heddle
