// A model file of this machine as it is served: loaded at a few batch sizes, with the protocol's tensors.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/graph/model.h"
#include "heddle/serve/model_source.h"
#include "heddle/serve/served_model.h"

namespace heddle {

// A model file at several batch sizes; a batch in between runs at the next size.
struct LocalModel {
  ModelSource source;
  ServedModel served;
  std::map<int, std::shared_ptr<const Model>> sizes;  // by batch size
};

// Has the tensor `rows` rows where the model at batch 1 has one, and is all else the same?
bool has_rows(const Tensor& one, const Tensor& many, int64_t rows);

// All rows of a batch become one row of a model without batches.
void join_rows(ServedModel& served);

// The SLO that was set, or one for a request that takes so long.
double served_slo_us(const ModelSettings& settings, double request_us);

// At the batch sizes 1 and `sizes` (ascending), or 1, 2, 4, .. up to the source's largest where there are
// none, up to the first that it does not have. Whether a model can be batched is found out: every input and
// output must have one more row at batch 2. Errors: those of Model::load(), tensors that the protocol does
// not have.
Result<std::shared_ptr<LocalModel>> load_local_model(const ModelSource& source, std::vector<int> sizes = {});

// The model of a plan, whose batch is fixed: `model` is imported as the plan says. Its rows can be those of
// several requests where the model at batch 1 has the same tensors of one row.
Result<std::shared_ptr<LocalModel>> planned_local_model(const ModelSource& source,
                                                        std::shared_ptr<const Model> model);

}  // namespace heddle
