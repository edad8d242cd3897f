#include "block_corrections.h"

#include <algorithm>

#include "heddle/base/fields.h"
#include "heddle/base/json.h"

namespace heddle {
namespace {

// [batch - 1][block]; null where the fleet has no such times.
const std::vector<std::vector<double>>* times_in(const Fleet& fleet, const TimesOf& of) {
  const int m = fleet.model_named(of.model), c = fleet.class_named(of.device_class);
  if (m < 0 || c < 0) return nullptr;
  const auto& shares = fleet.models[static_cast<size_t>(m)].latency_us[static_cast<size_t>(c)];
  const auto share = static_cast<size_t>(of.share) - 1;
  return share < shares.size() ? &shares[share] : nullptr;
}

}  // namespace

std::string place_text(const TimesOf& times) {
  return times.model + " on " + times.device_class +
         (times.share > 1 ? "/" + std::to_string(times.share) : "");
}

void BlockCorrections::multiply(const TimesOf& times, const std::vector<double>& factors) {
  auto& all = factors_[times];
  all.resize(std::max(all.size(), factors.size()), 1);
  for (size_t b = 0; b < factors.size(); ++b) all[b] *= factors[b];
}

Fleet BlockCorrections::applied(const Fleet& fleet) const {
  Fleet out = fleet;
  for (const auto& [of, factors] : factors_) {
    const auto* const there = times_in(out, of);
    if (there == nullptr) continue;
    auto& model = out.models[static_cast<size_t>(out.model_named(of.model))];
    auto& batches = model.latency_us[static_cast<size_t>(out.class_named(of.device_class))]
                                    [static_cast<size_t>(of.share) - 1];
    for (auto& blocks : batches)
      for (size_t b = 0; b < std::min(blocks.size(), factors.size()); ++b) blocks[b] *= factors[b];
  }
  return out;
}

void BlockCorrections::forget_changed(const Fleet& before, const Fleet& after) {
  std::erase_if(factors_, [&](const auto& entry) {
    const auto *const was = times_in(before, entry.first), *const is = times_in(after, entry.first);
    return was == nullptr || is == nullptr || *was != *is;
  });
}

Json BlockCorrections::to_json() const {
  Json out = Json::array();
  for (const auto& [of, factors] : factors_)
    out.push_back(
        {{"model", of.model}, {"class", of.device_class}, {"share", of.share}, {"factors", factors}});
  return out;
}

Result<BlockCorrections> BlockCorrections::from_json(const Json& json, const Fleet& fleet) {
  BlockCorrections corrections;
  const auto read = [&](const JsonCursor& at) -> Status {
    TimesOf of;
    std::vector<double> factors;
    Fields fields(at);
    fields.required("model", of.model)
        .required("class", of.device_class)
        .required("share", of.share, 1, kMaxShare)
        .required("factors", factors, 1e-9, 1e9);
    HEDDLE_RETURN_IF_ERROR(fields.finish());
    const int m = fleet.model_named(of.model);
    if (m < 0 || fleet.class_named(of.device_class) < 0 ||
        factors.size() != static_cast<size_t>(fleet.models[static_cast<size_t>(m)].blocks))
      return at.error("is of a model, a class or a number of blocks that the fleet does not have");
    corrections.factors_[of] = std::move(factors);
    return {};
  };
  HEDDLE_RETURN_IF_ERROR(each(read)(JsonCursor(json, "corrections")));
  return corrections;
}

Result<Fleet> with_times_of(const Fleet& fleet, const Fleet& times) {
  Fleet out = fleet;
  for (auto& model : out.models) {
    const int m = times.model_named(model.name);
    if (m < 0) continue;
    const auto& from = times.models[static_cast<size_t>(m)];
    if (from.blocks != model.blocks)
      return invalid_input("model '" + model.name + "' has " + std::to_string(from.blocks) +
                           " blocks there and " + std::to_string(model.blocks) +
                           " in the fleet that is served");
    for (size_t c = 0; c < out.classes.size(); ++c)
      if (const int k = times.class_named(out.classes[c].name); k >= 0)
        model.latency_us[c] = from.latency_us[static_cast<size_t>(k)];
  }
  return out;
}

}  // namespace heddle
