#include "heddle/command/man_page.h"

#include <fmt/format.h>

#include "heddle/base/version.h"

namespace heddle {
namespace {

// Text for roff: backslashes and dashes are meant as such, and no line begins with a control character.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

void add_flag(const FlagInfo& flag, std::string& out) {
  std::string names;
  for (const auto& name : flag.names)
    names += (names.empty() ? "" : ", ") + ("\\fB" + escaped(name) + "\\fR");
  const std::string value =
      flag.value.empty() || flag.positional ? "" : " \\fI" + escaped(flag.value) + "\\fR";
  out += fmt::format(".TP\n{}{}\n{}\n", names, value, escaped(flag.help));
}

void add_command(const CommandInfo& command, const std::string& path, std::string& out) {
  std::string positionals;
  for (const auto& flag : command.flags) {
    if (!flag.positional) continue;
    const std::string name = "\\fI" + escaped(flag.names.front()) + "\\fR" + (flag.repeatable ? "..." : "");
    positionals += flag.required ? " " + name : " [" + name + "]";
  }
  const std::string rest = command.parts.empty() ? positionals : " \\fIPART\\fR";
  out += fmt::format(".SS \"{0}\"\n\\fB{0}\\fR [\\fIoptions\\fR]{1}\n.PP\n{2}\n", escaped(path), rest,
                     escaped(command.summary));
  if (!command.footer.empty()) out += ".PP\n.nf\n" + escaped(command.footer) + "\n.fi\n";
  // Those of a verb with parts stand with each part.
  if (command.parts.empty())
    for (const auto& flag : command.flags) add_flag(flag, out);
  for (const auto& part : command.parts) add_command(part, path + " " + part.name, out);
}

}  // namespace

std::string man_page(const CommandInfo& program) {
  std::string upper = program.name;
  for (char& c : upper) c = static_cast<char>(c - 'a' + 'A');
  std::string out = fmt::format(
      ".TH {0} 1 \"\" \"{1} {2}\" \"User Commands\"\n.SH NAME\n{1} \\- {3}\n"
      ".SH SYNOPSIS\n\\fB{1}\\fR \\fIVERB\\fR [\\fIoptions\\fR] [\\fIarguments\\fR]\n.SH OPTIONS\n",
      upper, program.name, kVersion, escaped(program.summary));
  for (const auto& flag : program.flags) add_flag(flag, out);
  out += ".SH VERBS\n";
  for (const auto& part : program.parts) add_command(part, program.name + " " + part.name, out);
  out += R"(.SH EXIT STATUS
.TP
.B 0
done
.TP
.B 1
the answer is no: infeasible, failed verification
.TP
.B 2
bad usage or input
.TP
.B 3
a bug in Heddle
.TP
.B 130
interrupted before there was anything to give
)";
  return out;
}

}  // namespace heddle
