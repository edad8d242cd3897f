#include <fmt/format.h>

#include "heddle/command/completion.h"

namespace heddle {
namespace {

// Text inside '...' of a shell, in which zsh's specifications escape some characters by a backslash.
std::string quoted(const std::string& text, const std::string& escaped) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
      continue;
    }
    if (escaped.find(c) != std::string::npos) out += '\\';
    out += c;
  }
  return out;
}

// "(--output -o)"{--output,-o}"[help]:FILE:_files"
std::string flag_spec(const FlagInfo& flag) {
  std::string all, listed;
  for (const auto& name : flag.names) {
    all += (all.empty() ? "" : " ") + name;
    listed += (listed.empty() ? "" : ",") + name;
  }
  const std::string before = flag.repeatable ? "*" : "(" + all + ")";
  const std::string names = flag.names.size() > 1 ? fmt::format("'{}'{{{}}}'", before, listed)
                                                  : fmt::format("'{}{}", before, flag.names.front());
  const std::string value = flag.value.empty() ? "" : ":" + quoted(flag.value, ":\\") + ":_files";
  return fmt::format("{}[{}]{}'", names, quoted(flag.help, "[]:\\"), value);
}

std::string function_name(const std::string& path) {
  std::string name = "_" + path;
  for (char& c : name)
    if (c == ' ' || c == '-') c = '_';
  return name;
}

void add_function(const CommandInfo& command, const std::string& path, std::string& out) {
  std::string specs;
  for (const auto& flag : command.flags)
    if (!flag.positional) specs += " \\\n    " + flag_spec(flag);
  if (command.parts.empty()) {
    out += fmt::format("{}() {{\n  _arguments{} \\\n    '*:file:_files'\n}}\n", function_name(path), specs);
    return;
  }
  std::string listed, chosen;
  for (const auto& part : command.parts) {
    listed += fmt::format("\n      '{}:{}'", part.name, quoted(part.summary, ":\\"));
    chosen += fmt::format("\n        {}) {} ;;", part.name, function_name(path + " " + part.name));
  }
  out += fmt::format(
      "{}() {{\n  local line state parts\n  _arguments -C{} \\\n    '1: :->part' '*:: :->rest'\n"
      "  case $state in\n    part)\n      parts=({})\n      _describe 'verb' parts ;;\n"
      "    rest)\n      case $line[1] in{}\n      esac ;;\n  esac\n}}\n",
      function_name(path), specs, listed, chosen);
  for (const auto& part : command.parts) add_function(part, path + " " + part.name, out);
}

}  // namespace

std::string zsh_completion(const CommandInfo& program) {
  std::string out = fmt::format(
      "#compdef {0}\n# Completion of {0} for zsh: install it as _{0} in a folder of $fpath.\n", program.name);
  add_function(program, program.name, out);
  return out + fmt::format("if [[ $funcstack[1] == _{0} ]]; then _{0} \"$@\"; else compdef _{0} {0}; fi\n",
                           program.name);
}

}  // namespace heddle
