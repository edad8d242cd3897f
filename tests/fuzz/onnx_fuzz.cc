// Model::load() on any bytes as an .onnx file: an error or a model, never a crash, a hang or memory without
// limit.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "heddle/graph/model.h"

// OpenVINO's frontends stay in memory until the process ends: a leak of theirs would else be one of an
// unknown module, which .ci/lsan.supp cannot name.
extern "C" __attribute__((visibility("default"))) int dlclose(void*) noexcept { return 0; }

namespace {

// One file a process, removed at its end.
class ScratchFile {
 public:
  ScratchFile() {
    folder_ = (std::filesystem::temp_directory_path() / "heddle-fuzz-XXXXXX").string();
    if (::mkdtemp(folder_.data()) == nullptr) std::abort();
  }
  ~ScratchFile() {
    ::unlink(path().c_str());
    ::rmdir(folder_.c_str());
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  std::string path() const { return folder_ + "/model.onnx"; }

  void write(const uint8_t* data, size_t size) const {
    FILE* file = std::fopen(path().c_str(), "wb");
    if (file == nullptr || std::fwrite(data, 1, size, file) != size) std::abort();
    std::fclose(file);
  }

 private:
  std::string folder_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const ScratchFile scratch;
  scratch.write(data, size);
  heddle::ImportOptions options;
  options.batch = 1;
  const auto model = heddle::Model::load(scratch.path(), options);
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
