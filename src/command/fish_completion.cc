#include <fmt/format.h>

#include "heddle/command/completion.h"

namespace heddle {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

void add_command(const CommandInfo& command, const std::string& program, const std::string& path,
                 std::string& out) {
  const std::string begin = fmt::format("complete -c {0} -n '__{0}_at {1}' ", program, path);
  for (const auto& part : command.parts)
    out += fmt::format("{}-f -a {} -d {}\n", begin, part.name, quoted(part.summary));
  for (const auto& flag : command.flags) {
    if (flag.positional) continue;
    out += begin;
    for (const auto& name : flag.names)
      out += name.starts_with("--") ? "-l " + name.substr(2) + " " : "-s " + name.substr(1) + " ";
    out += (flag.value.empty() ? "" : "-r ") + ("-d " + quoted(flag.help)) + "\n";
  }
  for (const auto& part : command.parts) add_command(part, program, path_to(path, part), out);
}

// The switch that lengthens the path by one word.
void add_steps(const CommandInfo& command, const std::string& path, std::string& out) {
  for (const auto& part : command.parts) {
    const std::string longer = path_to(path, part);
    out += " " + quoted(longer);
    add_steps(part, longer, out);
  }
}

}  // namespace

std::string fish_completion(const CommandInfo& program) {
  std::string steps;
  add_steps(program, "", steps);
  std::string out = fmt::format(
      R"(# Completion of {0} for fish: install it as {0}.fish in a folder of $fish_complete_path.
# True if the words before the cursor name this verb (and its part).
function __{0}_at
    set -l at
    for word in (commandline -opc)[2..-1]
        set -l longer (string join -- ' ' $at $word)
        contains -- $longer{1}
        and set -a at $word
    end
    test "$at" = "$argv"
end
)",
      program.name, steps);
  add_command(program, program.name, "", out);
  return out;
}

}  // namespace heddle
