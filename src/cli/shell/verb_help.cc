// heddle help and heddle version: what --help and --version print, as verbs.
#include <CLI/CLI.hpp>

#include "build_text.h"
#include "heddle/base/spelling.h"
#include "verbs.h"

namespace heddle::cli {
namespace {

Result<const CLI::App*> part_of(const CLI::App& app, const std::string& name) {
  std::vector<std::string> names;
  for (const auto* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (sub->get_name() == name) return sub;
    names.push_back(sub->get_name());
  }
  return invalid_input("unknown verb '" + name + "'" + did_you_mean(name, names));
}

}  // namespace

RunFn setup_help(Command& command) {
  auto path = std::make_shared<std::array<std::string, 2>>();
  command.positional("VERB", (*path)[0], "such as plan", false);
  command.positional("PART", (*path)[1], "such as plan behind fleet", false);
  return [path, &program = command.program()](const Invocation&) -> Result<int> {
    const CLI::App* app = &program;
    std::string parents;
    for (const auto& name : *path) {
      if (name.empty()) break;
      parents += (parents.empty() ? "" : " ") + app->get_name();
      HEDDLE_ASSIGN_OR_RETURN(app, part_of(*app, name));
    }
    print("{}",
          app->get_formatter()->make_help(app, parents.empty() ? "heddle" : parents + " " + app->get_name(),
                                          CLI::AppFormatMode::Normal));
    return kExitDone;
  };
}

RunFn setup_version(Command&) {
  return [](const Invocation&) -> Result<int> {
    print("{}\n", build_text());
    return kExitDone;
  };
}

}  // namespace heddle::cli
