// Model::load() on any bytes as an .onnx file: an error or a model, never a crash, a hang or memory without
// limit.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "heddle/base/temporary_file.h"
#include "heddle/graph/model.h"
#include "input_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const heddle::TemporaryFile kFile("model.onnx");
  write_input(kFile.path(), {reinterpret_cast<const char*>(data), size});
  heddle::ImportOptions options;
  options.batch = 1;
  const auto model = heddle::Model::load(kFile.path(), options);
  if (!model) {
    if (model.error().message().empty() || model.error().code() == heddle::Code::kInternal) std::abort();
    return 0;
  }
  // What loads can be cut and signed, op by op.
  const auto& graph = *(*model)->graph();
  for (size_t i = 0; i < graph.num_ops() && i < 16; ++i) {
    const heddle::OpId op(i);
    if (!(*model)->cut({&op, 1})) std::abort();
    (void)(*model)->signature({&op, 1});
  }
  return 0;
}
