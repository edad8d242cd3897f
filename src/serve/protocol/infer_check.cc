#include "infer_check.h"

#include <algorithm>

#include "heddle/base/spelling.h"

namespace heddle {
namespace {

Error bad_request(const std::string& model, const std::string& message) {
  return invalid_input("model '" + model + "': " + message);
}

std::string names_of(const std::vector<TensorInfo>& tensors) {
  std::vector<std::string> names;
  for (const auto& t : tensors)
    if (t.listed()) names.push_back(t.name);
  return join_names(names, 40);
}

// What a user may send for a tensor, such as "FP32 of shape 1 to 8 x 3x224x224".
std::string expected_of(const ServedModel& m, const TensorInfo& t) {
  return std::string(protocol_name(t.dtype)) + " of shape " +
         (m.batched ? "N" + std::string(t.row.empty() ? "" : "x" + shape_text(t.shown())) +
                          " with N from 1 to " + std::to_string(m.max_rows)
                    : shape_text(t.shown()));
}

// Has the row the model's dimensions, and any size from 1 where these are open?
bool fits_open(const Shape& row, const Shape& shown) {
  return std::equal(row.begin(), row.end(), shown.begin(), shown.end(),
                    [](int64_t is, int64_t wanted) { return wanted < 0 ? is >= 1 : is == wanted; });
}

// `row` becomes the shape of one row.
Status check_input(const ServedModel& m, const TensorInfo& info, const InferTensor& t, bool first,
                   int64_t& rows, Shape& row) {
  row = t.shape;
  bool fits = t.dtype == info.dtype;
  if (m.batched && fits) {
    fits = !row.empty() && row[0] >= 1 && row[0] <= m.max_rows;
    if (fits) {
      if (first) rows = row[0];
      if (row[0] != rows)
        return bad_request(m.name, "its inputs have different numbers of rows, " + std::to_string(rows) +
                                       " and " + std::to_string(row[0]));
      row.erase(row.begin());
    }
  }
  if (!fits || !fits_open(row, info.shown()) ||
      (m.varying ? tensor_bytes(t.dtype, t.shape) != t.bytes : t.bytes != info.row_bytes * rows))
    return bad_request(m.name, "input '" + t.name + "' is " + protocol_name(t.dtype) + " of shape " +
                                   shape_text(t.shape) + ", expected " + expected_of(m, info));
  return {};
}

// Does the request say to which session it belongs, if and only if the model has state?
Status check_step(const ServedModel& m, const SessionStep& step) {
  if (step.id.empty() && (step.start || step.end))
    return bad_request(m.name, "sequence_start and sequence_end need a sequence_id");
  if (m.state == nullptr && !step.id.empty())
    return bad_request(m.name, "keeps no state between requests; send it without sequence_id");
  if (m.state != nullptr && step.id.empty())
    return bad_request(m.name,
                       "keeps state between the requests of a session: send the parameter sequence_id, with "
                       "sequence_start in a session's first request and sequence_end in its last");
  return {};
}

}  // namespace

bool same_rows(const ServedModel& a, const ServedModel& b) {
  const auto same = [](const std::vector<TensorInfo>& x, const std::vector<TensorInfo>& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const TensorInfo& s, const TensorInfo& t) {
      return s.name == t.name && s.dtype == t.dtype && s.row_bytes == t.row_bytes;
    });
  };
  const auto buckets = [](const ServedModel& m) {
    std::vector<std::string> names;
    if (m.varying)
      for (const auto& bucket : m.varying->buckets) names.push_back(bucket.name);
    return names;
  };
  const auto smaller = [](const ServedModel& m) {
    return m.varying ? m.varying->smaller : SmallerRuns::kRefused;
  };
  return a.batched == b.batched && a.state == b.state && same(a.inputs, b.inputs) &&
         same(a.outputs, b.outputs) && buckets(a) == buckets(b) && smaller(a) == smaller(b);
}

Result<CheckedRequest> check_request(const ServedModel& m, const InferRequest& r) {
  CheckedRequest out;
  HEDDLE_RETURN_IF_ERROR(check_step(m, r.session));
  for (const auto& t : r.inputs) {
    const auto known = std::ranges::find(m.inputs, t.name, &TensorInfo::name);
    if (known == m.inputs.end())
      return bad_request(
          m.name, "has no input '" + t.name.substr(0, 128) + "'; its inputs are " + names_of(m.inputs));
    if (known->state)
      return bad_request(m.name, "the input '" + t.name +
                                     "' is state that the server keeps for each session; do not send it");
  }
  // All of them are known, and none is state.
  if (std::cmp_greater(r.inputs.size(), std::ranges::count(m.inputs, false, &TensorInfo::state)))
    return bad_request(m.name, "an input is given twice");
  bool first = true;
  for (const auto& info : m.inputs) {
    if (info.state) {
      out.inputs.push_back(nullptr);
      if (m.varying) out.input_shapes.push_back(info.row);
      continue;
    }
    const auto it = std::find_if(r.inputs.begin(), r.inputs.end(),
                                 [&info](const auto& t) { return t.name == info.name; });
    if (it == r.inputs.end()) return bad_request(m.name, "the input '" + info.name + "' is missing");
    if (m.any_payload) {
      if (it->dtype != info.dtype)
        return bad_request(m.name,
                           "input '" + info.name + "' is " + protocol_name(it->dtype) + ", expected UINT8");
    } else {
      Shape row;
      HEDDLE_RETURN_IF_ERROR(check_input(m, info, *it, first, out.rows, row));
      if (m.varying) out.input_shapes.push_back(std::move(row));
    }
    out.inputs.push_back(&*it);
    first = false;
  }
  for (const auto& wanted : r.outputs) {
    size_t i = 0;
    while (i < m.outputs.size() && (m.outputs[i].hidden || m.outputs[i].name != wanted.name)) ++i;
    if (i == m.outputs.size())
      return bad_request(m.name, "has no output '" + wanted.name.substr(0, 128) + "'; its outputs are " +
                                     names_of(m.outputs));
    if (std::find(out.outputs.begin(), out.outputs.end(), i) != out.outputs.end())
      return bad_request(m.name, "the output '" + wanted.name + "' is asked for twice");
    out.outputs.push_back(i);
  }
  if (r.outputs.empty())
    for (size_t i = 0; i < m.outputs.size(); ++i)
      if (m.outputs[i].listed()) out.outputs.push_back(i);
  for (const size_t i : out.outputs)
    if (m.outputs[i].true_shape >= 0) out.shapes.push_back(static_cast<size_t>(m.outputs[i].true_shape));
  return out;
}

}  // namespace heddle
