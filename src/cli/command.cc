#include "command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <sstream>

#include "heddle/base/json.h"
#include "heddle/base/spelling.h"

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

Command& Command::option(const std::string& flags, double& out, const std::string& help, double min,
                         double max) {
  app_.add_option(flags, out, help)->check(CLI::Range(min, max))->type_name("X");
  return *this;
}

Command& Command::number(const std::string& flags, const std::function<void(int64_t)>& take,
                         const std::string& help, int64_t min, int64_t max) {
  app_.add_option_function<int64_t>(flags, take, help)->check(CLI::Range(min, max))->type_name("N");
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

Command& Command::switch_off(const std::string& flags, bool& out, const std::string& help) {
  app_.add_flag_callback(
      flags, [&out] { out = false; }, help);
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

const CLI::App& Command::program() const {
  const CLI::App* app = &app_;
  while (app->get_parent() != nullptr) app = app->get_parent();
  return *app;
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

Error unknown_name(const char* flag, const std::string& name, const std::vector<std::string>& known) {
  std::string expected;
  for (size_t i = 0; i < known.size(); ++i)
    expected += (i == 0 ? "" : i + 1 < known.size() ? ", " : " or ") + known[i];
  return invalid_input(std::string(flag) + " " + name + ": expected " + expected + did_you_mean(name, known));
}

void show_json(const Invocation& invocation, const Json& json) {
  if (invocation.progress) invocation.progress->finish();
  print("{}\n", json_text(json, 1));
}

void show_result(const Invocation& invocation, const Json& json, const std::string& text) {
  if (invocation.json) return show_json(invocation, json);
  if (invocation.progress) invocation.progress->finish();
  print("{}", text);
}

Status check_output(const std::string& path) {
  if (path.empty()) return {};
  const auto folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (folder.empty() || std::filesystem::is_directory(folder, error)) return {};
  return invalid_input(path + ": there is no folder '" + folder.string() + "'; create it first");
}

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) {
    if (!part.empty()) parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace heddle::cli
