// The program's verbs and flags as plain data, read from the flag parser: one source for --help, completion and the
// man page.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace heddle {

struct FlagInfo {
  std::vector<std::string> names;  // with dashes, the longest first; of a positional, its name alone
  std::string help;
  std::string value;  // a word for its value; empty: it takes none
  bool positional = false;
  bool required = false;
  bool repeatable = false;
};

struct CommandInfo {
  std::string name;     // "plan"; of a part: "plan" of `heddle fleet plan`
  std::string summary;  // one line
  std::string footer;   // what follows the flags in --help; may be empty
  std::vector<FlagInfo> flags;
  std::vector<CommandInfo> parts;
};

CommandInfo command_tree(const CLI::App& app);
// "fleet plan": the words from the program, whose own path is empty, to a part of the command at `path`.
std::string path_to(const std::string& path, const CommandInfo& part);

}  // namespace heddle
