#include "bucket_choice.h"

#include <algorithm>
#include <span>
#include <utility>

#include "heddle/fleet/fleet.h"
#include "heddle/fleet/size_buckets.h"
#include "heddle/graph/varying_model.h"

namespace heddle {
namespace {

constexpr size_t kMeasuredShapes = 5;

// Shares and padding of the buckets, from the requests.
Status weigh(BucketedShapes& buckets) {
  buckets.shares.assign(buckets.shapes.size(), 0);
  if (buckets.requests.empty()) {
    std::ranges::fill(buckets.shares, 1.0 / static_cast<double>(buckets.shapes.size()));
    return {};
  }
  double all = 0, sent = 0, run = 0;
  for (const auto& r : buckets.requests) {
    const auto it =
        std::ranges::find_if(buckets.shapes, [&r](const auto& bucket) { return covers(bucket, r.shapes); });
    if (it == buckets.shapes.end())
      return invalid_input("a request of the shape " + shapes_text(r.shapes) +
                           " is expected, and no bucket holds it; the largest is " +
                           shapes_text(buckets.shapes.back()));
    buckets.shares[static_cast<size_t>(it - buckets.shapes.begin())] += r.count;
    all += r.count;
    NamedShapes of_request = *it;
    for (const auto& [name, shape] : r.shapes) of_request[name] = shape;
    sent += r.count * elements_of(of_request);
    run += r.count * elements_of(*it);
  }
  for (auto& share : buckets.shares) share /= all;
  buckets.padding = 1 - sent / run;
  return {};
}

bool has_name(std::span<const std::string> names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

// The expected requests, with the names of their inputs.
Result<std::vector<ShapeCount>> named_requests(const ModelSource& source) {
  const auto& [buckets, requests, most, pad, limit] = source.settings.varying;
  std::vector<std::string> bucketed, of_first;
  for (const auto& [name, shape] : buckets.open) bucketed.push_back(name);
  for (const auto& [name, shape] : requests.front().shapes) of_first.push_back(name);
  const bool named = std::ranges::none_of(requests, [](const auto& r) { return r.shapes.contains(""); });
  if (bucketed.empty() && named) return with_names(requests, of_first);
  auto inputs = onnx_input_names(source.path);
  if (bucketed.empty() && !inputs.ok()) return inputs.error();
  for (const auto& request : requests)
    for (const auto& [name, shape] : request.shapes)
      if (!bucketed.empty() && !name.empty() && !has_name(bucketed, name) &&
          (!inputs.ok() || has_name(*inputs, name)))
        return invalid_input(
            "a request has the input '" + name +
            "', for which no buckets are given; give its buckets, too, or leave it out of the "
            "requests' shapes");
  if (!inputs.ok()) return with_names(requests, bucketed);  // only the import can tell them
  // Those that a request has.
  std::erase_if(*inputs, [&source](const auto& name) {
    const auto& state = source.settings.state;
    return source.settings.values.contains(name) ||
           std::ranges::find(state, name, &std::pair<std::string, std::string>::first) != state.end();
  });
  return with_names(requests, *inputs);
}

}  // namespace

Result<BucketedShapes> known_buckets(const ModelSource& source) {
  const auto& varying = source.settings.varying;
  BucketedShapes out;
  if (!varying.requests.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(out.requests, named_requests(source));
  }
  out.shapes = varying.buckets.shapes;
  out.open = varying.buckets.open;
  if (out.shapes.empty()) {
    if (out.requests.size() > kMostBucketSizes)
      return invalid_input("buckets are chosen from at most " + std::to_string(kMostBucketSizes) +
                           " shapes, and the requests have " + std::to_string(out.requests.size()) +
                           " different ones; round their sizes up, such as to multiples of 8");
    HEDDLE_ASSIGN_OR_RETURN(out.requests, chain_of(std::move(out.requests)));
    for (const auto& r : out.requests) out.shapes.push_back(r.shapes);
    out.open = out.shapes.back();
    for (const auto& [name, shape] : out.shapes.front())
      for (size_t d = 0; d < shape.size(); ++d)
        if (shape[d] != out.open[name][d]) out.open[name][d] = -1;
  }
  HEDDLE_RETURN_IF_ERROR(weigh(out));
  return out;
}

Result<BucketedShapes> choose_by_time(BucketedShapes all, int most,
                                      const std::function<Result<double>(const NamedShapes&)>& measure) {
  const size_t n = all.shapes.size();
  std::vector<CurvePoint> points;
  for (size_t k = 0; k < std::min(n, kMeasuredShapes); ++k) {
    const size_t i = k * (n - 1) / (std::min(n, kMeasuredShapes) - 1);
    HEDDLE_ASSIGN_OR_RETURN(const double us, measure(all.shapes[i]));
    points.push_back({elements_of(all.shapes[i]), us});
  }
  std::vector<double> us;
  for (const auto& shapes : all.shapes) us.push_back(on_curve(points, elements_of(shapes)));
  HEDDLE_ASSIGN_OR_RETURN(const auto choice, choose_buckets(all.shares, us, most));
  BucketedShapes out;
  out.open = std::move(all.open);
  out.requests = std::move(all.requests);
  for (const size_t i : choice.sizes) out.shapes.push_back(std::move(all.shapes[i]));
  HEDDLE_RETURN_IF_ERROR(weigh(out));
  return out;
}

std::vector<std::string> bucket_model_names(const std::string& model,
                                            const std::vector<NamedShapes>& shapes) {
  std::vector<std::string> names;
  for (const auto& bucket : shapes) {
    names.push_back(model + "@" + shapes_text(bucket));
    if (names.back().size() > kMaxFleetNameBytes)
      names.back() = model + "@bucket-" + std::to_string(names.size());
  }
  return names;
}

}  // namespace heddle
