#include "heddle/command/command.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <limits>

#include "heddle/base/json.h"
#include "heddle/base/numbers.h"
#include "heddle/base/spelling.h"
#include "heddle/base/units.h"

namespace heddle {

namespace {

constexpr const char* kTimeExpected = "a time such as 10s or 500ms (without a unit: seconds)";

std::string plain(double value) { return fmt::format("{}", value); }
std::string plain(int64_t value) { return std::to_string(value); }

// `read` gives nothing for text that is no such number; `expected` names one.
template <class Number>
void add_number(CLI::Option& option, const char* value_name, const std::string& expected, Number min,
                Number max, const std::function<std::optional<Number>(std::string_view)>& read) {
  const auto wrong = [=](const std::string& text) -> std::string {
    const auto value = read(text);
    if (value && *value >= min && *value <= max) return {};
    const bool any = max >= static_cast<Number>(std::numeric_limits<int64_t>::max());
    return "'" + text + "': expected " + expected +
           (any ? ", at least " + plain(min) : ", from " + plain(min) + " to " + plain(max));
  };
  option.check(CLI::Validator(wrong, ""))->type_name(value_name);
}

// An empty text is a mistake, mostly a shell's variable without a value; taken as "not given", it would do what nobody
// asked for.
void refuse_empty(CLI::Option& option) {
  option.check(CLI::Validator(
      [](const std::string& text) -> std::string { return text.empty() ? "'': expected a value" : ""; }, ""));
}

}  // namespace

Command& Command::group(const char* name) {
  group_ = name;
  return *this;
}

CLI::Option& Command::grouped(CLI::Option* option) const {
  if (!group_.empty()) option->group(group_);
  return *option;
}

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
  refuse_empty(grouped(app_.add_option(flags, out, help)));
  return *this;
}

Command& Command::real(const std::string& flags, double& out, const std::string& help, double min, double max,
                       const Quantity& quantity) {
  auto& option = grouped(app_.add_option_function<std::string>(
      flags, [&out, read = quantity.read](const std::string& text) { out = read(text).value_or(out); },
      help));
  add_number<double>(option, quantity.value_name, quantity.expected, min, max, quantity.read);
  return *this;
}

Command& Command::option(const std::string& flags, double& out, const std::string& help, double min,
                         double max) {
  return real(flags, out, help, min, max, {"X", "a number", parse_number<double>});
}

Command& Command::seconds(const std::string& flags, double& out, const std::string& help, double min,
                          double max) {
  return real(flags, out, help, min, max, {"TIME", kTimeExpected, parse_seconds});
}

Command& Command::seconds_if_given(const std::string& flags, std::optional<double>& out, const char* alone,
                                   const std::string& help, double min, double max) {
  auto& option = grouped(app_.add_option_function<std::string>(
      flags, [&out](const std::string& text) { out = parse_seconds(text); }, help));
  add_number<double>(option, "[TIME]", kTimeExpected, min, max, parse_seconds);
  option.expected(0, 1)->default_str(alone);
  return *this;
}

Command& Command::rate(const std::string& flags, double& out, const std::string& help, double min,
                       double max) {
  return real(flags, out, help, min, max, {"RATE", "a rate such as 200/s or 12k/s", parse_rate});
}

Command& Command::bandwidth(const std::string& flags, double& out, const std::string& help, double min,
                            double max) {
  return real(flags, out, help, min, max,
              {"BANDWIDTH", "a bandwidth such as 25Gbit/s or 3GB/s", parse_bandwidth});
}

namespace {

template <typename Out>
std::function<void(const std::string&)> take_bytes(Out& out) {
  return [&out](const std::string& text) {
    if (const auto bytes = parse_bytes(text)) out = int64_t{*bytes};
  };
}

}  // namespace

Command& Command::bytes(const std::string& flags, int64_t& out, const std::string& help, int64_t min,
                        int64_t max) {
  auto& option = grouped(app_.add_option_function<std::string>(flags, take_bytes(out), help));
  add_number<int64_t>(option, "SIZE", "a size such as 64MiB", min, max, parse_bytes);
  return *this;
}

Command& Command::bytes(const std::string& flags, std::optional<int64_t>& out, const std::string& help,
                        int64_t min, int64_t max) {
  auto& option = grouped(app_.add_option_function<std::string>(flags, take_bytes(out), help));
  add_number<int64_t>(option, "SIZE", "a size such as 64MiB", min, max, parse_bytes);
  return *this;
}

Command& Command::number(const std::string& flags, const std::function<void(int64_t)>& take,
                         const std::string& help, int64_t min, int64_t max) {
  auto& option = grouped(app_.add_option_function<std::string>(
      flags, [take](const std::string& text) { take(parse_count(text).value_or(0)); }, help));
  add_number<int64_t>(option, "N", "a whole number, such as 200 or 10k", min, max, parse_count);
  return *this;
}

Command& Command::list(const std::string& flags, std::vector<std::string>& out, const std::string& help) {
  // One value per occurrence: "--shape a=1 MODEL" must not swallow MODEL.
  auto& option = grouped(app_.add_option(flags, out, help));
  option.expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->type_name("TEXT");
  refuse_empty(option);
  return *this;
}

Command& Command::flag(const std::string& flags, bool& out, const std::string& help) {
  grouped(app_.add_flag(flags, out, help));
  return *this;
}

Command& Command::switch_off(const std::string& flags, bool& out, const std::string& help) {
  grouped(app_.add_flag_callback(
      flags, [&out] { out = false; }, help));
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
    Command command(*sub);
    parts.emplace_back(sub, verb.setup(command));
  }
  return [parts](const Invocation& invocation) -> Result<int> {
    for (const auto& [sub, run] : parts)
      if (sub->parsed()) return run(invocation);
    return internal_error("no part of the verb was parsed");
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

Result<std::pair<std::string, double>> assignment(const std::string& flag, const std::string& text) {
  const auto eq = text.rfind('=');
  char* end = nullptr;
  const double value = eq == std::string::npos ? NAN : std::strtod(text.c_str() + eq + 1, &end);
  if (!std::isfinite(value) || end == text.c_str() + eq + 1 || *end != '\0')
    return invalid_input(flag + " " + text + ": expected NAME=NUMBER");
  return std::pair(text.substr(0, eq), value);
}

}  // namespace heddle
