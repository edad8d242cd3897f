#include <fmt/format.h>

#include "heddle/command/completion.h"

namespace heddle {
namespace {

// The branch of one command, then those of its parts. `path` is empty for the program.
void add_branches(const CommandInfo& command, const std::string& path, std::string& out) {
  std::string parts, flags, valued;
  for (const auto& part : command.parts) parts += (parts.empty() ? "" : " ") + part.name;
  for (const auto& flag : command.flags) {
    if (flag.positional) continue;
    for (const auto& name : flag.names) {
      flags += (flags.empty() ? "" : " ") + name;
      if (!flag.value.empty()) valued += name + " ";
    }
  }
  out += fmt::format("    '{}') parts='{}' flags='{}' valued=' {}' ;;\n", path, parts, flags, valued);
  for (const auto& part : command.parts) add_branches(part, path_to(path, part), out);
}

// The patterns "PATH PART" of all parts.
void add_patterns(const CommandInfo& command, const std::string& path, std::string& out) {
  for (const auto& part : command.parts) {
    out += fmt::format("{}'{} {}'", out.empty() ? "" : " | ", path, part.name);
    add_patterns(part, path_to(path, part), out);
  }
}

}  // namespace

std::string bash_completion(const CommandInfo& program) {
  std::string steps, branches;
  add_patterns(program, "", steps);
  add_branches(program, "", branches);
  return fmt::format(
      R"(# Completion of {0} for bash: source it, or install it as share/bash-completion/completions/{0}.
_{0}() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD - 1]}} path= parts= flags= valued= i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$path ${{COMP_WORDS[i]}}" in
      {1}) path="${{path:+$path }}${{COMP_WORDS[i]}}" ;;
    esac
  done
  case "$path" in
{2}  esac
  COMPREPLY=()
  if [[ $cur == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$cur")
  elif [[ -n $parts && $valued != *" $prev "* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$parts" -- "$cur")
  else
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
  fi
}}
complete -F _{0} {0}
)",
      program.name, steps, branches);
}

}  // namespace heddle
