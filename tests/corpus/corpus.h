// The public ONNX corpus as scripts/dump_onnx_corpus.py writes it, and plain OpenVINO to run models with.
#pragma once

#include <map>
#include <openvino/runtime/core.hpp>
#include <optional>
#include <string>
#include <vector>

#include "heddle/graph/model.h"

namespace heddle {

struct CorpusCase {
  std::string kind, name, folder;
  int sets = 0;
};

// Empty, with a failed expectation, when the corpus is not there.
std::vector<CorpusCase> corpus_cases();
std::vector<CorpusCase> corpus_cases(const std::string& kind);

// A TensorProto file as a tensor; an empty tensor (no data type) when there is none.
ov::Tensor read_tensor(const std::string& path);

// The CPU in full precision and deterministic; a model is compiled and run once. Results by tensor id.
std::map<TensorId, ov::Tensor> run_segment(const SegmentModel& segment,
                                           const std::map<TensorId, ov::Tensor>& values);
// All ops as one segment.
SegmentModel whole_segment(const Model& model);

// Cuts the model into `parts` convex segments along a random topological order and runs them in order,
// without the ops of `but`, which no other op may read.
std::map<TensorId, ov::Tensor> run_in_parts(const Model& model, int parts, uint64_t seed,
                                            const std::map<TensorId, ov::Tensor>& inputs, std::string* error,
                                            const std::vector<OpId>& but = {});

// From 2 to 8: how many parts a model is cut into, so that seeds which follow each other have all of them.
constexpr int parts_by(uint64_t seed) { return 2 + static_cast<int>(seed % 7); }

// Loads the case's model. If the error advises --value, the corpus's own inputs give the values.
Result<std::shared_ptr<const Model>> load_case(const CorpusCase& c);
// Inputs of the first data set by tensor id; nothing when a file is missing or of another type.
std::optional<std::map<TensorId, ov::Tensor>> case_inputs(const CorpusCase& c, const Model& model);

// |a - b| <= atol + rtol |b| for all elements, and the same shape; says what differs.
std::string difference(const ov::Tensor& actual, const ov::Tensor& expected, double rtol, double atol);

// Is `expected` the softmax (of a single row) of these? Compared are differences of logits, to `rtol` of the
// largest.
std::string softmax_difference(const ov::Tensor& logits, const ov::Tensor& expected, double rtol);

// The expected count of what fails with which reason; a reason is the message without names in quotes and
// numbers.
std::string reason_class(const Error& error);

}  // namespace heddle
