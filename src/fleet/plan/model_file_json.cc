#include "model_file_json.h"

#include "heddle/base/hash.h"

namespace heddle {
namespace {

constexpr int64_t kMostOps = 10'000'000;

}  // namespace

Result<FleetModelFile> model_file_from_json(const JsonCursor& at) {
  HEDDLE_RETURN_IF_ERROR(at.check_keys({"path", "hash", "shapes", "ops", "feature_maps"}));
  FleetModelFile file;
  HEDDLE_ASSIGN_OR_RETURN(const auto path, at.at("path"));
  HEDDLE_ASSIGN_OR_RETURN(file.path, path.as_string());
  if (file.path.empty()) return path.error("expected the model's file");
  HEDDLE_ASSIGN_OR_RETURN(const auto hash, at.at("hash"));
  HEDDLE_ASSIGN_OR_RETURN(const std::string digits, hash.as_string());
  if (digits.size() != 16 || digits.find_first_not_of("0123456789abcdef") != std::string::npos)
    return hash.error("expected 16 lower-case hexadecimal digits, as `heddle fleet profile` writes them");
  file.hash = std::stoull(digits, nullptr, 16);
  if (at.has("shapes")) {
    HEDDLE_ASSIGN_OR_RETURN(const auto shapes, at.at("shapes"));
    if (!shapes.value().is_object()) return shapes.error("expected an object from input names to dimensions");
    for (const auto& [name, shape] : shapes.value().items()) {
      HEDDLE_ASSIGN_OR_RETURN(const auto dims, shapes.at(name));
      HEDDLE_ASSIGN_OR_RETURN(file.shapes[name], dims.as_ints(0, INT64_MAX));
    }
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto ops, at.at("ops"));
  HEDDLE_ASSIGN_OR_RETURN(const auto runs, ops.elements());
  for (const auto& run : runs) {
    HEDDLE_ASSIGN_OR_RETURN(const auto pair, run.as_ints(0, kMostOps));
    if (pair.size() != 2 || pair[0] < 1 || pair[1] >= kMaxBlocks)
      return run.error("expected [how many ops follow each other, their block]");
    if (static_cast<int64_t>(file.block_of.size()) + pair[0] > kMostOps)
      return run.error("more than " + std::to_string(kMostOps) + " ops");
    file.block_of.insert(file.block_of.end(), static_cast<size_t>(pair[0]), static_cast<int>(pair[1]));
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto maps, at.string_or("feature_maps", "as they are"));
  if (maps != "as they are" && maps != "fp16")
    return at.error("feature_maps: expected \"fp16\" or \"as they are\"");
  file.fp16_cuts = maps == "fp16";
  return file;
}

Json to_json(const FleetModelFile& file) {
  Json shapes = Json::object(), ops = Json::array();
  for (const auto& [name, shape] : file.shapes) shapes[name] = shape;
  for (size_t i = 0; i < file.block_of.size();) {
    size_t end = i;
    while (end < file.block_of.size() && file.block_of[end] == file.block_of[i]) ++end;
    ops.push_back({end - i, file.block_of[i]});
    i = end;
  }
  Json json = {{"path", file.path}, {"hash", hex64(file.hash)}, {"ops", std::move(ops)}};
  if (!shapes.empty()) json["shapes"] = std::move(shapes);
  if (file.fp16_cuts) json["feature_maps"] = "fp16";
  return json;
}

}  // namespace heddle
