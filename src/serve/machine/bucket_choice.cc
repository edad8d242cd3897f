#include "bucket_choice.h"

#include <algorithm>

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

}  // namespace

Result<BucketedShapes> known_buckets(const ModelSource& source) {
  const auto& varying = source.settings.varying;
  BucketedShapes out;
  out.requests = varying.requests;
  if (!out.requests.empty()) {
    const bool named =
        std::ranges::none_of(out.requests, [](const auto& r) { return r.shapes.contains(""); });
    std::vector<std::string> inputs;
    for (const auto& [name, shape] : varying.buckets.open) inputs.push_back(name);
    if (inputs.empty() && named)
      for (const auto& [name, shape] : out.requests.front().shapes) inputs.push_back(name);
    if (inputs.empty()) {
      HEDDLE_ASSIGN_OR_RETURN(inputs, onnx_input_names(source.path));
      std::erase_if(inputs, [&source](const auto& name) { return source.settings.values.contains(name); });
    }
    HEDDLE_ASSIGN_OR_RETURN(out.requests, with_names(std::move(out.requests), inputs));
  }
  out.shapes = varying.buckets.shapes;
  out.open = varying.buckets.open;
  if (out.shapes.empty()) {
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

}  // namespace heddle
