// The example of docs/library.md is what is compiled and run here.
#include "library_example.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "graph/onnx_writer.h"

namespace heddle {
namespace {

std::string content(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(LibraryExample, IsTheDocumentsAndWritesAPlan) {
  const std::filesystem::path root(HEDDLE_SOURCE_DIR);
  const std::string document = content(root / "docs/library.md");
  EXPECT_NE(document.find("```cpp\n" + content(root / "tests/session/library_example.h") + "```"),
            std::string::npos);

  using namespace onnx_writer;
  const auto folder =
      std::filesystem::temp_directory_path() / ("heddle-library-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "model.onnx", std::ios::binary)
      << model({{node("Relu", {"x"}, {"y"}, "relu")}, {value("x", {1, 64})}, {value("y", {1, 64})}, {}});
  const auto status = plan_a_model((folder / "model.onnx").string(), (folder / "plan.json").string(),
                                   (folder / "store.sqlite").string());
  EXPECT_TRUE(status.ok()) << status.error().to_string();
  EXPECT_TRUE(read_plan_file((folder / "plan.json").string()).ok());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace heddle
