#include "onnx_skeleton.h"

#include <cstdint>
#include <functional>

#include "onnx_wire.h"
#include "onnx_writer.h"

namespace heddle::internal {
namespace {

// Field numbers of onnx.proto.
constexpr uint32_t kModelGraph = 7, kGraphInitializer = 5;
constexpr int kTensorExternalData = 13, kTensorDataLocation = 14, kExternal = 1;
// Smaller ones are copied: shapes and the like, which are read while the model is imported.
constexpr size_t kLeastInPlace = 4096;

class Hollower {
 public:
  explicit Hollower(std::string_view file) : file_(file) {}

  Result<WireMessage> model() const {
    return each(file_, kModelGraph, [this](std::string_view graph) {
      return each(graph, kGraphInitializer, [this](std::string_view t) { return tensor(t); });
    });
  }

 private:
  using Change = std::function<Result<WireMessage>(std::string_view)>;

  // A copy of the message with the fields of this number changed.
  Result<WireMessage> each(std::string_view message, uint32_t number, const Change& change) const {
    WireMessage copy;
    WireReader reader(message, file_.data());
    while (!reader.done()) {
      HEDDLE_ASSIGN_OR_RETURN(const WireField field, reader.next());
      if (field.number == number && field.type == WireField::kBytes) {
        HEDDLE_ASSIGN_OR_RETURN(const WireMessage changed, change(field.bytes));
        copy.message(static_cast<int>(number), changed);
      } else {
        copy.bytes() += between(field.offset, reader.offset());
      }
    }
    return copy;
  }

  Result<WireMessage> tensor(std::string_view message) const {
    WireMessage copy;
    std::string_view raw;
    WireReader reader(message, file_.data());
    while (!reader.done()) {
      HEDDLE_ASSIGN_OR_RETURN(const WireField field, reader.next());
      if (field.number == kOnnxRawData && field.type == WireField::kBytes) {
        raw = field.bytes;
      } else {
        copy.bytes() += between(field.offset, reader.offset());
      }
    }
    if (raw.size() < kLeastInPlace) {
      WireMessage whole;
      whole.bytes() = message;
      return whole;
    }
    // The importer's word for "the offset is an address in memory".
    entry(copy, "location", "*/_ORT_MEM_ADDR_/*");
    entry(copy, "offset", std::to_string(reinterpret_cast<uintptr_t>(raw.data())));
    entry(copy, "length", std::to_string(raw.size()));
    copy.number(kTensorDataLocation, kExternal);
    return copy;
  }

  static void entry(WireMessage& tensor, std::string_view key, std::string_view value) {
    WireMessage pair;
    pair.text(1, key);
    pair.text(2, value);
    tensor.message(kTensorExternalData, pair);
  }

  std::string_view between(int64_t from, int64_t to) const {
    return file_.substr(static_cast<size_t>(from), static_cast<size_t>(to - from));
  }

  std::string_view file_;
};

}  // namespace

Result<std::string> onnx_skeleton(std::string_view file) {
  HEDDLE_ASSIGN_OR_RETURN(WireMessage model, Hollower(file).model());
  return std::move(model.bytes());
}

}  // namespace heddle::internal
