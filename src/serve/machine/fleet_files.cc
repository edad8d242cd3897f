#include "fleet_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "heddle/cluster/variants.h"

namespace heddle {
namespace {

std::string number(double v) { return fmt::format("{:.2g}", v); }

}  // namespace

Result<std::shared_ptr<const UnsplitModel>> FleetFiles::whole(const FleetModel& model, int max_batch,
                                                              const Device& device) {
  const auto& file = model.file;
  if (const auto it = last_.find(model.name); it != last_.end()) {
    const auto& had = *it->second;
    if (had.file.path == file.path && had.file.hash == file.hash && had.file.shapes == file.shapes &&
        had.file.block_of.size() == file.block_of.size() && had.max_batch >= max_batch)
      return next_[model.name] = it->second;
  }
  auto whole = std::make_shared<UnsplitModel>();
  whole->file = file;
  whole->max_batch = max_batch;
  HEDDLE_ASSIGN_OR_RETURN(whole->local, parts_.load(model.name, file, max_batch));
  HEDDLE_ASSIGN_OR_RETURN(
      const auto runner,
      PlanRunner::create(whole->local, as_variant(device, {device.backend, Precision::kF32})));
  if (max_batch > 1) {
    if (const auto rows = runner->check_rows(); !rows.ok())
      return Error(rows.error().code(), rows.error().message() +
                                            ": requests must not share a batch; plan for batch 1 "
                                            "(profile with --batches 1)");
  }
  HEDDLE_RETURN_IF_ERROR(run_whole(*runner, *whole->local, whole->inputs, whole->outputs));
  next_[model.name] = whole;
  return std::shared_ptr<const UnsplitModel>(std::move(whole));
}

void FleetFiles::plan_made() {
  last_ = std::move(next_);
  next_.clear();
}

Result<std::shared_ptr<ServedModel>> served_in_parts(const FleetModel& model, const UnsplitModel& whole,
                                                     double slo_us, const SplitCheck& check) {
  const bool half = model.file.fp16_cuts;
  const double worst = check.worst.largest;
  if (half && std::isinf(worst))
    return Error(Code::kVerificationFailed,
                 "cut into parts its outputs are infinite, or no numbers, but the whole model's are not: "
                 "values above 65504 are infinite in fp16; remove \"feature_maps\"");
  const bool differs = check.narrow ? !(check.worst.mean <= kMostNarrowMean)
                                    : worst > (half ? kMostHalfDifference : kMostSplitDifference);
  if (differs)
    return Error(
        Code::kVerificationFailed,
        "cut into parts its outputs differ from the whole model's by " + number(worst) +
            " of the largest output" +
            (half ? "; its feature maps lose too much precision in fp16; remove \"feature_maps\"" : ""));
  auto served = std::make_shared<ServedModel>(whole.local->served);
  served->slo_us = slo_us;
  if (check.split)
    served->note = std::string(half ? "feature maps in fp16: " : "in parts: ") +
                   "outputs differ from the whole model's" + (check.narrow ? " in f32" : "") +
                   " by at most " + number(worst) + " of the largest, on a random request";
  if (!check.unverified.empty())
    served->note += (served->note.empty() ? "" : "; ") + std::string("not compared: ") + check.unverified;
  return served;
}

int largest_batch(const Deployment& deployment, uint32_t model) {
  uint32_t largest = 1;
  for (const auto& p : deployment.pipelines)
    if (p.model == model) largest = std::max(largest, p.batch);
  return static_cast<int>(largest);
}

}  // namespace heddle
