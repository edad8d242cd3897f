// The buckets of a model, given or chosen for the expected requests.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/serve/model_source.h"

namespace heddle {

struct BucketedShapes {
  std::vector<NamedShapes> shapes;  // ascending by elements
  std::vector<double> shares;       // of the requests; sum 1
  NamedShapes open;                 // -1 for the dimensions that vary
  double padding = 0;  // share of the expected requests' inputs, as they run, that is padding; 0: unknown
  // Of each shape, the requests in it; the requests are in ascending order. Empty where they are unknown.
  std::vector<ShapeCount> requests;
};

// The buckets that are given, with the shares of the expected requests where these are known; else a bucket for
// each shape of a request, of which choose_by_time() takes some. Errors (invalid input): a request that no bucket
// holds, or with an input that has no buckets; more shapes than kMostBucketSizes; chain_of()'s, with_names()'s.
Result<BucketedShapes> known_buckets(const ModelSource& source);

// At most `most` of the shapes, for the least expected time (size_buckets.h). `measure` gives the time of one
// request at a shape, in us; it is called for a few shapes, between which times lie on a line over the elements
// of the inputs.
Result<BucketedShapes> choose_by_time(BucketedShapes all, int most,
                                      const std::function<Result<double>(const NamedShapes&)>& measure);

// Names for the buckets as models of a fleet, unique in it: "net@1x3x48x160", or "net@bucket-2" for the second one if
// the shapes make a name too long for a fleet.
std::vector<std::string> bucket_model_names(const std::string& model, const std::vector<NamedShapes>& shapes);

}  // namespace heddle
