#include "command.h"

#include <CLI/CLI.hpp>
#include <filesystem>

namespace heddle::cli {

Command& Command::positional(const std::string& name, std::string& out, const std::string& help,
                             bool required) {
  auto* option = app_.add_option(name, out, help);
  if (required) option->required();
  return *this;
}

Command& Command::positionals(const std::string& name, std::vector<std::string>& out,
                              const std::string& help) {
  app_.add_option(name, out, help)->required();
  return *this;
}

Command& Command::option(const std::string& flags, std::string& out, const std::string& help) {
  app_.add_option(flags, out, help);
  return *this;
}

Command& Command::option(const std::string& flags, int64_t& out, const std::string& help, int64_t min,
                         int64_t max) {
  app_.add_option(flags, out, help)->check(CLI::Range(min, max))->type_name("N");
  return *this;
}

Command& Command::option(const std::string& flags, double& out, const std::string& help, double min,
                         double max) {
  app_.add_option(flags, out, help)->check(CLI::Range(min, max))->type_name("X");
  return *this;
}

Command& Command::option(const std::string& flags, std::optional<int64_t>& out, const std::string& help,
                         int64_t min, int64_t max) {
  app_.add_option_function<int64_t>(
          flags, [&out](const int64_t& v) { out = v; }, help)
      ->check(CLI::Range(min, max))
      ->type_name("N");
  return *this;
}

Command& Command::list(const std::string& flags, std::vector<std::string>& out, const std::string& help) {
  // One value per occurrence: "--shape a=1 MODEL" must not swallow MODEL.
  app_.add_option(flags, out, help)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("TEXT");
  return *this;
}

Command& Command::flag(const std::string& flags, bool& out, const std::string& help) {
  app_.add_flag(flags, out, help);
  return *this;
}

Command& Command::footer(const std::string& text) {
  app_.footer(text);
  return *this;
}

RunFn Command::subverbs(std::span<const Verb> verbs) {
  app_.require_subcommand(1);
  std::vector<std::pair<CLI::App*, RunFn>> parts;
  for (const auto& verb : verbs) {
    auto* sub = app_.add_subcommand(verb.name, verb.summary);
    sub->fallthrough();
    Command command(*sub);
    parts.emplace_back(sub, verb.setup(command));
  }
  return [parts](const Invocation& invocation) -> Result<int> {
    for (const auto& [sub, run] : parts)
      if (sub->parsed()) return run(invocation);
    return Error(Code::kInternal, "no part of the verb was parsed");
  };
}

int exit_status(Code code) {
  switch (code) {
    case Code::kInvalidInput:
    case Code::kNotFound:
    case Code::kUnsupported:
    case Code::kIo:
      return kExitBadInput;
    case Code::kInfeasible:
    case Code::kVerificationFailed:
      return kExitNo;
    case Code::kCancelled:
      return kExitInterrupted;
    case Code::kInternal:
      break;
  }
  return kExitInternal;
}

Status check_output(const std::string& path) {
  if (path.empty()) return {};
  const auto folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (folder.empty() || std::filesystem::is_directory(folder, error)) return {};
  return Error(Code::kInvalidInput, path + ": there is no folder '" + folder.string() + "'; create it first");
}

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> parts;
  std::string part;
  for (const char c : text + ",") {
    if (c != ',') {
      part += c;
    } else if (!part.empty()) {
      parts.push_back(std::move(part));
      part.clear();
    }
  }
  return parts;
}

}  // namespace heddle::cli
