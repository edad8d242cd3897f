#include "onnx_skeleton.h"

#include <cstdint>
#include <functional>

#include "onnx_wire.h"
#include "onnx_writer.h"

namespace heddle::internal {
namespace {

// Field numbers of onnx.proto.
constexpr uint32_t kModelGraph = 7, kGraphNode = 1, kGraphInitializer = 5;
constexpr uint32_t kNodeAttribute = 5, kAttributeTensor = 5;
constexpr int kTensorExternalData = 13, kTensorDataLocation = 14, kExternal = 1;
// Smaller tensors are copied: shapes and the like, which the import itself reads.
constexpr size_t kLeastInPlace = 4096;

class Hollower {
 public:
  Hollower(std::string_view file, const std::string& name) : file_(file), name_(name) {}

  Result<WireMessage> model() const {
    return each(file_, [this](const WireField& f) -> Change {
      if (f.number != kModelGraph) return nullptr;
      return [this](std::string_view graph) { return hollow_graph(graph); };
    });
  }

 private:
  using Change = std::function<Result<WireMessage>(std::string_view)>;
  using Choice = std::function<Change(const WireField&)>;  // null: the field is copied as it is

  // Copies the message with the chosen fields changed.
  Result<WireMessage> each(std::string_view message, const Choice& choose) const {
    WireMessage copy;
    WireReader reader(message, file_.data());
    while (!reader.done()) {
      HEDDLE_ASSIGN_OR_RETURN(const WireField field, reader.next());
      if (const Change change = field.type == WireField::kBytes ? choose(field) : nullptr) {
        HEDDLE_ASSIGN_OR_RETURN(const WireMessage changed, change(field.bytes));
        copy.message(static_cast<int>(field.number), changed);
      } else {
        copy.bytes() += between(field.offset, reader.offset());
      }
    }
    return copy;
  }

  // Weights are initializers or, in PaddlePaddle's files, attributes of Constant nodes. Nothing else is that
  // large, so small nodes are copied unparsed.
  Result<WireMessage> hollow_graph(std::string_view graph) const {
    return each(graph, [this](const WireField& f) -> Change {
      if (f.bytes.size() < kLeastInPlace) return nullptr;
      if (f.number == kGraphInitializer) return [this](std::string_view t) { return tensor(t); };
      if (f.number == kGraphNode) return [this](std::string_view n) { return node(n); };
      return nullptr;
    });
  }

  Result<WireMessage> node(std::string_view message) const {
    return each(message, [this](const WireField& f) -> Change {
      if (f.number != kNodeAttribute || f.bytes.size() < kLeastInPlace) return nullptr;
      return [this](std::string_view attribute) {
        return each(attribute, [this](const WireField& g) -> Change {
          if (g.number != kAttributeTensor || g.bytes.size() < kLeastInPlace) return nullptr;
          return [this](std::string_view t) { return tensor(t); };
        });
      };
    });
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
    // Refer to the model file as external data: the importer maps such files and keeps them mapped. (It would
    // copy data passed by address.)
    entry(copy, "location", name_);
    entry(copy, "offset", std::to_string(raw.data() - file_.data()));
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
  const std::string& name_;
};

}  // namespace

Result<std::string> onnx_skeleton(std::string_view file, const std::string& name) {
  HEDDLE_ASSIGN_OR_RETURN(WireMessage model, Hollower(file, name).model());
  return std::move(model.bytes());
}

}  // namespace heddle::internal
