// The heddle program.
#include <filesystem>

#include "build_text.h"
#include "heddle/command/program.h"
#include "heddle/cost/profile_store.h"
#include "heddle/graph/model_content.h"
#include "verbs.h"

namespace heddle::cli {
namespace {

constexpr std::pair<const char*, const char*> kRenamed[] = {
    {"heddle load", "loadtest"},         {"heddle selftest", "doctor"},     {"fleet status", "server status"},
    {"fleet add", "server add"},         {"fleet remove", "server remove"}, {"fleet drain", "server drain"},
    {"fleet undrain", "server undrain"}, {"fleet switch", "server switch"},
};

}  // namespace
}  // namespace heddle::cli

int main(int argc, char** argv) {
  using namespace heddle;
  keep_imports_in((std::filesystem::path(ProfileStore::default_path()).parent_path() / "imported").string());
  return run_program({.summary = "Plans, runs and explains neural networks on unequal accelerators.",
                      .example = "heddle plan MODEL",
                      .version = cli::build_text(),
                      .verbs = cli::verbs(),
                      .renamed = cli::kRenamed},
                     argc, argv);
}
