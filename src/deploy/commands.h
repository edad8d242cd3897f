// Words of command lines, some of whose text the engine fills in when it starts the process.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "heddle/deploy/workloads.h"

namespace heddle {

// Marks text that the engine expands ("$(POD_NAME)"); everything else in a word stands for itself, whatever names of
// classes and models look like.
inline constexpr char kVariableBegin = '\x01', kVariableEnd = '\x02';
inline std::string variable(std::string_view text) {
  return kVariableBegin + std::string(text) + kVariableEnd;
}

// The word with its literal pieces written by `literal` and its variables by `variable`.
template <class Literal, class Variable>
std::string expanded_word(std::string_view word, Literal literal, Variable variable_text) {
  std::string out;
  while (!word.empty()) {
    const auto end = word.find(kVariableEnd);
    const auto begin = word.substr(0, end).find(kVariableBegin);
    if (end == std::string_view::npos || begin == std::string_view::npos) {
      out += literal(std::string(word));
      break;
    }
    if (begin != 0) out += literal(std::string(word.substr(0, begin)));
    out += variable_text(std::string(word.substr(begin + 1, end - begin - 1)));
    word.remove_prefix(end + 1);
  }
  return out;
}

inline std::string replaced_all(std::string text, std::string_view what, std::string_view by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

// For POSIX shells: literal text in single quotes, variables in double quotes.
std::string shell_word(std::string_view word);
// The words, each as `written` writes it, on lines of some 100 bytes that end in a backslash.
std::string command_lines(const std::vector<std::string>& words,
                          std::string (*written)(std::string_view word));
std::string shell_command(const std::vector<std::string>& words);

// Why an engine refuses a plan over several hosts.
std::string over_hosts(const Workloads& workloads, const char* engine);

// Makes tokens, a certificate authority and a certificate for these names, once; more names as arguments.
std::string secrets_script(const Workloads& workloads, const std::vector<std::string>& names);

}  // namespace heddle
