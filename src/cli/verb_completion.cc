// heddle completion, heddle man: what shells and man show of the program.
#include <memory>

#include "heddle/command/completion.h"
#include "heddle/command/man_page.h"
#include "verbs.h"

namespace heddle::cli {

RunFn setup_completion(Command& command) {
  auto shell = std::make_shared<std::string>();
  command.positional("SHELL", *shell, "bash, zsh or fish");
  return [shell, &program = command.program()](const Invocation&) -> Result<int> {
    using Script = std::function<std::string(const CommandInfo&)>;
    HEDDLE_ASSIGN_OR_RETURN(
        const Script script,
        named_value<Script>("SHELL", *shell,
                            {{"bash", bash_completion}, {"zsh", zsh_completion}, {"fish", fish_completion}}));
    print("{}", script(command_tree(program)));
    return kExitDone;
  };
}

RunFn setup_man(Command& command) {
  return [&program = command.program()](const Invocation&) -> Result<int> {
    print("{}", man_page(command_tree(program)));
    return kExitDone;
  };
}

}  // namespace heddle::cli
