#include "heddle/runtime/output_error.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "decisions.h"
#include "heddle/base/spelling.h"

namespace heddle {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Sums in another order differ by less in float32.
constexpr double kFloatNoise = 1e-5;

void measure(const TensorView& actual, const TensorView& expected, TensorError& error) {
  error.largest = error.mean = kInfinity;
  error.cosine = 0;
  if (actual.dtype != expected.dtype || actual.shape != expected.shape) return;
  const int64_t count = numbers_in(expected);
  double low = kInfinity, high = -kInfinity, largest = 0, sum = 0, dot = 0, aa = 0, bb = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double a = element_as_double(actual, i), b = element_as_double(expected, i);
    if (std::isnan(a) && std::isnan(b)) continue;
    const double off = a == b ? 0 : std::fabs(a - b);
    largest = std::isnan(off) ? kInfinity : std::max(largest, off);
    sum += std::isnan(off) ? kInfinity : off;
    if (std::isfinite(b)) low = std::min(low, b), high = std::max(high, b);
    dot += a * b, aa += a * a, bb += b * b;
  }
  if (largest > 0 && high < low) return;  // nothing finite to hold them against
  error.largest = error.mean = 0;
  error.cosine = 1;
  if (largest == 0) return;
  const double size = std::max(std::fabs(high), std::fabs(low));
  const double range = high - low > kFloatNoise * size ? high - low : std::max(size, 1e-30);
  error.largest = largest / range;
  error.mean = sum / static_cast<double>(count) / range;
  const double cosine = aa > 0 && bb > 0 ? dot / std::sqrt(aa * bb) : 0;
  error.cosine = std::isfinite(cosine) ? cosine : 0;
}

// No outputs at all, or another number of them.
OutputError incomparable() {
  OutputError error;
  error.samples = 1;
  error.outputs.push_back({.output = "", .largest = kInfinity, .mean = kInfinity, .cosine = 0});
  return error;
}

template <class Of>
double worst(const OutputError& error, double value, Of of) {
  for (const TensorError& e : error.outputs) value = of(value, e);
  return value;
}

double share(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 1;
}

}  // namespace

double OutputError::largest() const {
  return worst(*this, 0, [](double w, const TensorError& e) { return std::max(w, e.largest); });
}
double OutputError::mean() const {
  return worst(*this, 0, [](double w, const TensorError& e) { return std::max(w, e.mean); });
}
double OutputError::cosine() const {
  return worst(*this, 1, [](double w, const TensorError& e) { return std::min(w, e.cosine); });
}
double OutputError::agreement() const {
  return worst(*this, 1,
               [](double w, const TensorError& e) { return std::min(w, share(e.agreeing, e.decisions)); });
}
double OutputError::top5_agreement() const {
  return worst(*this, 1,
               [](double w, const TensorError& e) { return std::min(w, share(e.top5_agreeing, e.top5)); });
}
int64_t OutputError::decisions() const {
  int64_t sum = 0;
  for (const TensorError& e : outputs) sum += e.decisions;
  return sum;
}

Status check_decisions(const Graph& graph, const DecisionRules& rules) {
  std::vector<std::string> names;
  for (const TensorId t : graph.outputs()) names.push_back(graph.tensor(t).name);
  for (const auto& [name, rule] : rules) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      return invalid_input("a decision is given for the output " + quote_text(name) +
                           did_you_mean(name, names) + "; the model has " + join_names(names));
  }
  return {};
}

OutputError output_error(const Graph& graph, std::span<const TensorView> actual,
                         std::span<const TensorValue> expected, const DecisionRules& rules) {
  if (actual.size() != expected.size() || actual.size() != graph.outputs().size()) return incomparable();
  OutputError error;
  error.samples = 1;
  for (size_t i = 0; i < actual.size(); ++i) {
    const Tensor& tensor = graph.tensor(graph.outputs()[i]);
    const TensorView reference = expected[i].view();
    TensorError& e = error.outputs.emplace_back();
    e.output = tensor.name;
    measure(actual[i], reference, e);
    const auto rule = rules.find(tensor.name);
    compare_decisions(rule != rules.end() ? rule->second : usual_decision(tensor, reference), actual[i],
                      reference, e);
  }
  return error;
}

OutputError output_error(std::span<const TensorValue> actual, std::span<const TensorValue> expected) {
  if (actual.size() != expected.size()) return incomparable();
  OutputError error;
  error.samples = 1;
  for (size_t i = 0; i < actual.size(); ++i)
    measure(actual[i].view(), expected[i].view(), error.outputs.emplace_back());
  return error;
}

void add_samples(OutputError& sum, const OutputError& more) {
  if (sum.samples == 0) {
    sum = more;
    return;
  }
  const double before = sum.samples, added = more.samples;
  sum.samples += more.samples;
  for (size_t i = 0; i < std::min(sum.outputs.size(), more.outputs.size()); ++i) {
    TensorError& s = sum.outputs[i];
    const TensorError& m = more.outputs[i];
    s.largest = std::max(s.largest, m.largest);
    s.mean = (before * s.mean + added * m.mean) / (before + added);
    s.cosine = std::min(s.cosine, m.cosine);
    s.decisions += m.decisions;
    s.agreeing += m.agreeing;
    s.top5 += m.top5;
    s.top5_agreeing += m.top5_agreeing;
  }
}

}  // namespace heddle
