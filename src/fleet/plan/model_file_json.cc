#include "model_file_json.h"

#include "heddle/base/fields.h"
#include "heddle/base/hash.h"

namespace heddle {
namespace {

constexpr int64_t kMostOps = 10'000'000;

}  // namespace

Result<FleetModelFile> model_file_from_json(const JsonCursor& at) {
  FleetModelFile file;
  Fields f(at);
  f.required("path",
             [&file](const JsonCursor& path) -> Status {
               HEDDLE_ASSIGN_OR_RETURN(file.path, path.as_string());
               return file.path.empty() ? path.error("expected the model's file") : Status();
             })
      .required("hash", file.hash, hex64_from_text, kHex64Expected)
      .optional("shapes", each_member("an object from input names to dimensions",
                                      [&file](const std::string& name, const JsonCursor& shape) {
                                        return take(shape, file.shapes[name], 0, INT64_MAX);
                                      }))
      .required("ops", each([&file](const JsonCursor& run) -> Status {
                  HEDDLE_ASSIGN_OR_RETURN(const auto pair, run.as_ints(0, kMostOps));
                  if (pair.size() != 2 || pair[0] < 1 || pair[1] >= kMaxBlocks)
                    return run.error("expected [how many ops follow each other, their block]");
                  if (static_cast<int64_t>(file.block_of.size()) + pair[0] > kMostOps)
                    return run.error("more than " + std::to_string(kMostOps) + " ops");
                  file.block_of.insert(file.block_of.end(), static_cast<size_t>(pair[0]),
                                       static_cast<int>(pair[1]));
                  return {};
                }))
      .optional("feature_maps", [&file](const JsonCursor& maps) -> Status {
        file.fp16_cuts = maps.value() == "fp16";
        if (file.fp16_cuts || maps.value() == "as they are") return {};
        return maps.error("is " + maps.describe() + ", expected 'fp16' or 'as they are'");
      });
  HEDDLE_RETURN_IF_ERROR(f.finish());
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
