// Condenses the error texts of OpenVINO's importer, which run over many lines of source locations and contain
// counters that differ from run to run.
#include <algorithm>
#include <regex>
#include <sstream>

#include "heddle/base/spelling.h"
#include "openvino_reader.h"

namespace heddle::internal {
namespace {

constexpr size_t kMaxReason = 300;
constexpr std::string_view kNoRule = "No conversion rule found for operations: ";

// Lines that only give locations in OpenVINO's sources, or boilerplate.
bool is_noise(std::string_view line) {
  for (const std::string_view start :
       {"Exception from", "Check '", "While validating", "FrontEnd API failed", "Model wasn't fully",
        "Summary:", "Shape inference input shapes", "-- Conversion is failed", "Loading input model",
        "Converting input model", "Please specify OpenVINO Extensions"}) {
    if (line.starts_with(start)) return true;
  }
  return line.empty();
}

// "SequenceInsert_57746" to "SequenceInsert": the number is a per-process counter.
std::string without_counters(const std::string& text) {
  static const std::regex counter("\\b([A-Z][A-Za-z0-9]*)_[0-9]+\\b");
  return std::regex_replace(text, counter, "$1");
}

// The text after `from` up to `to`; empty when either is missing.
std::string_view between(std::string_view text, std::string_view from, std::string_view to) {
  const size_t start = text.find(from);
  if (start == std::string_view::npos) return {};
  const size_t end = text.find(to, start + from.size());
  if (end == std::string_view::npos) return {};
  return text.substr(start + from.size(), end - start - from.size());
}

// The first node in the graph or its subgraphs for which `wanted` holds; null if there is none.
template <class Predicate>
const OnnxNode* find_node(const OnnxGraph& graph, const Predicate& wanted) {
  for (const auto& n : graph.nodes) {
    if (wanted(n)) return &n;
    for (const auto& a : n.attributes)
      for (const auto& g : a.graphs)
        if (const auto* found = find_node(*g, wanted)) return found;
  }
  return nullptr;
}

// "ai.onnx.ml.LabelEncoder" or "Bernoulli-22" to the operator's own name.
std::string_view operator_name(std::string_view text) {
  const size_t dot = text.find_last_of(".:");
  if (dot != std::string_view::npos) text.remove_prefix(dot + 1);
  const size_t dash = text.rfind('-');
  return dash == std::string_view::npos ? text : text.substr(0, dash);
}

Error unsupported_operator(std::string_view list, const OnnxModel* onnx) {
  const std::string_view first = list.substr(0, list.find(','));
  if (first.find("util::Sequence") != std::string_view::npos)
    return unsupported("the model needs sequences of tensors (" + std::string(first) +
                       "), which OpenVINO does not support here");
  const auto type = operator_name(first);
  const auto* node = onnx == nullptr
                         ? nullptr
                         : find_node(onnx->graph, [&](const OnnxNode& n) { return n.op_type == type; });
  const std::string where = node == nullptr ? "operator " + quote_text(first) : node_text(*node);
  return unsupported(where + ": OpenVINO does not support the operator " + quote_text(first));
}

}  // namespace

const OnnxNode* find_onnx_node(const OnnxModel* onnx, std::string_view name) {
  if (onnx == nullptr || name.empty()) return nullptr;
  return find_node(onnx->graph, [&](const OnnxNode& n) {
    return n.name == name || std::find(n.outputs.begin(), n.outputs.end(), name) != n.outputs.end();
  });
}

std::string openvino_reason(const std::string& what) {
  std::string reason;
  std::istringstream lines(what);
  for (std::string line; std::getline(lines, line);) {
    if (is_noise(line)) continue;
    if (!reason.empty()) reason += "; ";
    reason += line;
  }
  // Some checks have no message; then report the condition.
  if (reason.empty()) {
    const std::string_view condition = between(what, "Check '", "' failed");
    reason = condition.empty() ? "no reason is given"
                               : "the condition '" + std::string(condition) + "' does not hold";
  }
  reason = without_counters(reason);
  std::string clean = quote_text(reason, kMaxReason);  // removes control characters
  return clean.substr(1, clean.size() - 2);
}

Unconverted unconverted_in(const std::string& what) {
  Unconverted found;
  found.failed = true;
  static const std::regex node("<Node\\([^)]*\\): ([^>]+)>");
  for (std::sregex_iterator at(what.begin(), what.end(), node), end; at != end; ++at)
    found.nodes.push_back((*at)[1]);
  const size_t rule = what.find(kNoRule);
  if (rule == std::string::npos) return found;
  const size_t start = rule + kNoRule.size();
  std::istringstream list(what.substr(start, what.find('\n', start) - start));
  for (std::string name; std::getline(list, name, ',');) {
    const auto type =
        operator_name(std::string_view(name).substr(std::min(name.size(), name.find_first_not_of(' '))));
    found.operators.emplace_back(type);
  }
  return found;
}

Error conversion_error(const std::string& what, const OnnxModel* onnx) {
  const size_t log = what.find(" with a message:\n");
  if (log != std::string::npos) {
    // Report only the first failed operation: others often follow from it.
    const size_t start = log + std::string_view(" with a message:\n").size();
    const std::string block = what.substr(
        start, std::min({what.find("\n\nSummary", start), what.find("\n-- ", start), what.size()}) - start);
    const std::string_view node = between(block, "<Node(", ")");
    const std::string_view name = between(block, "): ", ">'");
    const OnnxNode* found = find_onnx_node(onnx, name);
    const std::string where = found != nullptr ? node_text(*found)
                              : node.empty()   ? std::string("an operator")
                                               : "node " + quote_text(name) + " (" + std::string(node) + ")";
    return unsupported(where + ": OpenVINO rejects it: " + openvino_reason(block));
  }
  const size_t rule = what.find(kNoRule);
  if (rule != std::string::npos) {
    const size_t start = rule + kNoRule.size();
    return unsupported_operator(std::string_view(what).substr(start, what.find('\n', start) - start), onnx);
  }
  return invalid_input("OpenVINO rejects the model: " + openvino_reason(what));
}

}  // namespace heddle::internal
