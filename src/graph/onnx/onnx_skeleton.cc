// onnx_skeleton(): an ONNX file without its weights.
#include <algorithm>
#include <cstdint>

#include "onnx_file.h"
#include "onnx_wire.h"
#include "onnx_writer.h"

namespace heddle::internal {
namespace {

// Where messages hold tensors, by field numbers of onnx.proto. Weights are initializers or, in PaddlePaddle's
// files, attributes of Constant nodes.
enum class Message { kModel, kGraph, kNode, kAttribute, kTensor };
struct Part {
  Message whole;
  uint32_t field;
  Message part;
};
constexpr Part kParts[] = {{Message::kModel, 7, Message::kGraph},
                           {Message::kGraph, 1, Message::kNode},
                           {Message::kGraph, 5, Message::kTensor},
                           {Message::kNode, 5, Message::kAttribute},
                           {Message::kAttribute, 5, Message::kTensor}};
constexpr int kTensorExternalData = 13, kTensorDataLocation = 14, kExternal = 1;
// Smaller tensors are copied: shapes and the like, which the import itself reads. Messages smaller than that
// are copied unparsed.
constexpr size_t kLeastInPlace = 4096;

class Hollower {
 public:
  Hollower(std::string_view file, const std::string& name) : file_(file), name_(name) {}

  // Copies a message of that kind without the data of its large tensors.
  Result<WireMessage> copy(std::string_view message, Message kind) const {
    WireMessage copied;
    std::string_view raw;
    HEDDLE_RETURN_IF_ERROR(each_field(message, [&](const WireField& field) -> Status {
      const auto* part = std::find_if(std::begin(kParts), std::end(kParts), [&](const Part& p) {
        return p.whole == kind && p.field == field.number;
      });
      const bool large = field.type == WireField::kBytes && field.bytes.size() >= kLeastInPlace;
      if (large && part != std::end(kParts)) {
        HEDDLE_ASSIGN_OR_RETURN(const WireMessage changed, copy(field.bytes, part->part));
        copied.message(static_cast<int>(field.number), changed);
      } else if (large && kind == Message::kTensor && field.number == kOnnxRawData) {
        raw = field.bytes;
      } else {
        copied.bytes() += field.whole;
      }
      return {};
    }));
    if (raw.empty()) return copied;
    // Refer to the model file as external data: the importer maps such files and keeps them mapped. (It would
    // copy data passed by address.)
    entry(copied, "location", name_);
    entry(copied, "offset", std::to_string(raw.data() - file_.data()));
    entry(copied, "length", std::to_string(raw.size()));
    copied.number(kTensorDataLocation, kExternal);
    return copied;
  }

 private:
  static void entry(WireMessage& tensor, std::string_view key, std::string_view value) {
    WireMessage pair;
    pair.text(1, key);
    pair.text(2, value);
    tensor.message(kTensorExternalData, pair);
  }

  std::string_view file_;
  const std::string& name_;
};

}  // namespace

Result<std::string> onnx_skeleton(std::string_view file, const std::string& name) {
  HEDDLE_ASSIGN_OR_RETURN(WireMessage model, Hollower(file, name).copy(file, Message::kModel));
  return std::move(model.bytes());
}

}  // namespace heddle::internal
