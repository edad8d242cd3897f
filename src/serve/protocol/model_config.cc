#include "model_config.h"

#include <fmt/format.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cctype>

#include "heddle/base/file.h"
#include "heddle/serve/infer_message.h"

namespace heddle {
namespace {

constexpr size_t kMostConfigBytes = size_t{1} << 20;
constexpr int64_t kMostDim = int64_t{1} << 30;

// Keeps the first error; members that we do not know are only warnings.
class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string& message) override {
    if (text.empty())
      text = "line " + std::to_string(line + 1) + ", column " + std::to_string(column + 1) + ": " + message;
  }
  void AddWarning(int, google::protobuf::io::ColumnNumber, const std::string&) override {}
  std::string text;
};

// The parser skips lists of messages under names that it does not know only where a colon precedes them,
// which 'instance_group [ { .. } ]' need not have: with a colon before each list both are read.
std::string with_colons(const std::string& text) {
  std::string out;
  char quote = 0, last = 0;  // the last character that is neither blank nor comment
  bool comment = false, escaped = false;
  for (const char c : text) {
    if (comment) {
      comment = c != '\n';
    } else if (quote != 0) {
      if (c == quote && !escaped) quote = 0;
      escaped = c == '\\' && !escaped;
    } else if (c == '#') {
      comment = true;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' && (std::isalnum(static_cast<unsigned char>(last)) || last == '_')) {
      out += ':';
    }
    if (!comment && !std::isspace(static_cast<unsigned char>(c))) last = c;
    out += c;
  }
  return out;
}

}  // namespace

Status read_triton_config(const std::string& path, ModelSettings& settings) {
  HEDDLE_ASSIGN_OR_RETURN(const auto text, read_file(path));
  const auto bad = [&path](const std::string& what) { return invalid_input(path + ": " + what); };
  if (text.size() > kMostConfigBytes) return bad("has more than 1 MiB; expected a model configuration");
  inference::ModelConfig config;
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.AllowUnknownField(true);
  parser.RecordErrorsTo(&error);
  if (!parser.ParseFromString(with_colons(text), &config))
    return bad(error.text + "; expected Triton's model configuration, such as 'max_batch_size: 8'");
  if (config.max_batch_size() < 0)
    return bad("max_batch_size is " + std::to_string(config.max_batch_size()) + ", expected 0 or more");
  const bool batched = config.max_batch_size() > 0;
  settings.max_batch = std::clamp(config.max_batch_size(), 1, kMostServedBatch);
  const auto levels = config.dynamic_batching().priority_levels();
  const auto by_default = config.dynamic_batching().default_priority_level();
  if (levels >= static_cast<uint64_t>(kLastPriority) || by_default > levels ||
      (levels > 0 && by_default == 0))
    return bad("priority_levels " + std::to_string(levels) + " and default_priority_level " +
               std::to_string(by_default) + ": expected fewer than " + std::to_string(kLastPriority) +
               " levels and a default one from 1 to that");
  settings.priority_levels = static_cast<int>(levels);
  settings.default_priority = static_cast<int>(by_default);
  const auto& sequences = config.sequence_batching();
  for (const auto& state : sequences.state()) {
    if (state.input_name().empty() || state.output_name().empty())
      return bad("sequence_batching: a state has no input_name or no output_name");
    for (const auto& initial : state.initial_state())
      if (!initial.data_file().empty())
        return bad("sequence_batching: state '" + state.input_name() +
                   "' begins with a file's data, which is not supported; Heddle begins with zeros");
    settings.state.emplace_back(state.input_name(), state.output_name());
  }
  if (sequences.max_sequence_idle_microseconds() > 0)
    settings.session_idle_us = static_cast<double>(sequences.max_sequence_idle_microseconds());
  for (const auto& input : config.input()) {
    if (input.dims().empty()) continue;
    Shape shape;
    if (batched) shape.push_back(1);
    bool open = false;
    for (const auto d : input.dims()) {
      if (d < -1 || d == 0 || d > kMostDim)
        return bad("input '" + input.name() + "' has the dimension " + std::to_string(d) +
                   ", expected -1 or 1 to 2^30");
      open |= d < 0;
      shape.push_back(d);
    }
    if (!open) settings.shapes[input.name()] = std::move(shape);
  }
  return {};
}

inference::ModelConfig triton_config(const ServedModel& model, double planned_rate_per_s) {
  inference::ModelConfig config;
  config.set_name(model.name);
  config.set_platform(model.platform);
  config.set_backend("heddle");
  config.set_max_batch_size(model.batched ? model.max_rows : 0);
  if (model.priority_levels > 0) {
    config.mutable_dynamic_batching()->set_priority_levels(static_cast<uint64_t>(model.priority_levels));
    config.mutable_dynamic_batching()->set_default_priority_level(
        static_cast<uint64_t>(model.default_priority));
  }
  const auto type_of = [](const TensorInfo& from) {
    inference::DataType type = inference::TYPE_INVALID;
    inference::DataType_Parse(std::string("TYPE_") + protocol_name(from.dtype), &type);
    return type;
  };
  const auto fill = [type_of](const TensorInfo& from, auto& to) {
    to.set_name(from.name);
    to.set_data_type(type_of(from));
    for (const auto d : from.shown()) to.add_dims(d);
  };
  for (const auto& t : model.inputs)
    if (t.listed()) fill(t, *config.add_input());
  for (const auto& t : model.outputs)
    if (t.listed()) fill(t, *config.add_output());
  if (model.state) {
    auto& sequences = *config.mutable_sequence_batching();
    sequences.set_max_sequence_idle_microseconds(static_cast<uint64_t>(us_from_ns(model.state->idle_ns)));
    for (const auto& t : model.state->tensors) {
      auto& state = *sequences.add_state();
      state.set_input_name(model.inputs[t.input].name);
      state.set_output_name(model.outputs[t.output].name);
      state.set_data_type(type_of(model.inputs[t.input]));
      for (const auto d : model.inputs[t.input].row) state.add_dims(d);
    }
  }
  auto& parameters = *config.mutable_parameters();
  parameters[kSloParameter].set_string_value(fmt::format("{:.17g}", model.slo_us));
  parameters[kRateParameter].set_string_value(fmt::format("{:.17g}", planned_rate_per_s));
  if (!model.precision.empty()) parameters["precision"].set_string_value(model.precision);
  return config;
}

}  // namespace heddle
