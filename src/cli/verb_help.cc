// heddle help and heddle version: what --help and --version print, as verbs.
#include <memory>

#include "build_text.h"
#include "heddle/command/program.h"
#include "verbs.h"

namespace heddle::cli {

RunFn setup_help(Command& command) {
  auto path = std::make_shared<std::array<std::string, 2>>();
  command.positional("VERB", (*path)[0], "such as plan", false);
  command.positional("PART", (*path)[1], "such as plan behind fleet", false);
  return [path, &program = command.program()](const Invocation&) -> Result<int> {
    const auto given = std::ranges::find(*path, "") - path->begin();
    HEDDLE_ASSIGN_OR_RETURN(const auto text, help_of(program, std::span(*path).first(given)));
    print("{}", text);
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
