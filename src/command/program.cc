#include "heddle/command/program.h"

#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>

#include "error_report.h"
#include "heddle/base/log.h"
#include "heddle/base/spelling.h"
#include "heddle/base/terminal.h"
#include "heddle/base/units.h"
#include "heddle/command/command.h"
#include "help_text.h"
#include "rank_process.h"

namespace heddle {
namespace {

// The signal handler can reach only globals; the token's flag is a lock-free atomic.
const CancelToken* g_cancel = nullptr;
volatile std::sig_atomic_t g_interrupts = 0;

void on_interrupt(int) {
  g_interrupts = g_interrupts + 1;
  // The second Ctrl-C means "now".
  if (g_interrupts > 1) _exit(kExitInterrupted);
  if (g_cancel != nullptr) g_cancel->cancel();
}

void install_signal_handlers(const CancelToken& token) {
  g_cancel = &token;
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // A closed pipe (`heddle ... | head`) shows as a write error instead of killing the program half-way
  // through a file.
  std::signal(SIGPIPE, SIG_IGN);
}

// While it lives, the signals raise `token`, which outlives it. Afterwards libraries end, and the token is gone.
class SignalsRaise {
 public:
  explicit SignalsRaise(const CancelToken& token) { install_signal_handlers(token); }
  ~SignalsRaise() { g_cancel = nullptr; }
  SignalsRaise(const SignalsRaise&) = delete;
  SignalsRaise& operator=(const SignalsRaise&) = delete;
};

// The parser's messages in words that say what to do.
std::string argument_message(const CLI::ParseError& error) {
  std::string text = error.what();
  const std::string flag = text.substr(0, text.find(": "));
  if (error.get_name() != "ArgumentMismatch" || flag == text) return text;
  if (text.find("At Most 1 required") != std::string::npos) return flag + " is given more than once";
  return flag + " needs a value";
}

// Names the first unexpected argument and the nearest flag or verb; without one, the parser's own message.
std::string usage_message(const VerbProgram& program, const CLI::App& where, bool top,
                          const CLI::ParseError& error) {
  auto extras = where.remaining(true);
  // Arguments that a part of a verb does not know fall through to the verb.
  for (const auto* app = where.get_parent(); extras.empty() && app != nullptr; app = app->get_parent())
    extras = app->remaining(true);
  if (extras.empty())
    return dynamic_cast<const CLI::RequiredError*>(&error) == nullptr ? argument_message(error)
           : top ? std::string("needs a verb, for example `") + program.example + "`"
           : where.get_require_subcommand_min() > 0 && where.get_subcommands().empty()
               ? "needs a part, for example `heddle " + where.get_name() + " " +
                     where.get_subcommands([](const CLI::App*) { return true; }).front()->get_name() + "`"
               : error.what();
  const bool parts = where.get_require_subcommand_min() > 0;
  std::vector<std::string> names;
  for (const auto* option : where.get_options()) {
    for (const auto& l : option->get_lnames()) names.push_back("--" + l);
  }
  // After a mistyped flag its value is unexpected too: report the flag.
  std::string extra = extras.front();
  for (const auto& e : extras) {
    if (e.rfind("--", 0) == 0) extra = e;
  }
  const bool flag = extra.rfind('-', 0) == 0;
  if (parts && !flag) {
    names.clear();
    for (const auto* sub : where.get_subcommands([](const CLI::App*) { return true; }))
      names.push_back(sub->get_name());
  }
  for (const auto& [old, now] : program.renamed)
    if (parts && !flag && where.get_name() + " " + extra == old)
      return "'" + extra + "' is now `heddle " + now + "`";
  const char* what = flag ? "unknown flag '" : parts ? "unknown verb '" : "unexpected argument '";
  return what + extra + "'" + (flag || parts ? did_you_mean(extra.substr(0, extra.find('=')), names) : "");
}

int usage_error(const VerbProgram& program, const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* where = &app;
  std::string command = "heddle";
  while (!where->get_subcommands().empty()) {
    where = where->get_subcommands().front();
    command += " " + where->get_name();
  }
  if (is_silent()) return kExitBadInput;
  const bool top = where == &app;
  print(stderr, "{} {}\nSee `{} --help`.\n", painted_error(Ink::kRed, command + ":"),
        usage_message(program, *where, top, error), command);
  return kExitBadInput;
}

// What every verb takes, before its name or after.
struct CommonFlags {
  Invocation& invocation;
  ColorWhen color = ColorWhen::kAuto;

  void declare(CLI::App& to) {
    to.add_flag("--json", invocation.json, "print JSON for machines");
    to.add_flag("-q,--quiet", invocation.quiet, "no progress line");
    to.add_flag("-v,--verbose", invocation.verbose,
                "say on stderr what takes time: imports, stored times, steps of planning, compiling");
    // At once, so that the message about a later mistake is coloured or not, too.
    const auto choose = [this](const std::string& name) {
      color = color_when(name).value_or(color);
      set_color(color, invocation.json);
    };
    to.add_option_function<std::string>(
          "--color", choose,
          "colour the output: auto, always or never (default auto: on a terminal, without NO_COLOR)")
        ->trigger_on_parse()
        ->check(CLI::Validator(
            [](const std::string& name) -> std::string {
              return color_when(name) ? "" : "'" + name + "': expected auto, always or never";
            },
            ""))
        ->type_name("WHEN");
  }
};

// The program's arguments. A flag whose value may be left out (Command::seconds_if_given) gets the usual one if no time
// follows: the parser would take the verb's argument for it.
std::vector<std::string> arguments_of(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> args(argv + 1, argv + argc);
  const CLI::App* where = &app;
  for (size_t i = 0; i + 1 < args.size(); ++i) {
    const auto parts =
        where->get_subcommands([&](const CLI::App* part) { return part->get_name() == args[i]; });
    if (!parts.empty()) where = parts.front();
    const auto* option = where->get_option_no_throw(args[i]);
    const bool may_be_alone =
        option != nullptr && option->get_expected_min() == 0 && option->get_expected_max() == 1;
    if (may_be_alone && !parse_seconds(args[i + 1])) args[i] += "=" + option->get_default_str();
  }
  return args;
}

// `status` if all that was printed arrived, or its reader had seen enough.
int after_printing(int status) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  pollfd reader{STDOUT_FILENO, 0, 0};
  if (poll(&reader, 1, 0) == 1 && (reader.revents & POLLERR) != 0) return status;
  std::fprintf(stderr, "heddle: cannot write to standard output\n");
  return kExitBadInput;
}

int run(const VerbProgram& program, int argc, char** argv) {
  // Nothing is cut where a program or a file reads the tables.
  set_table_width(terminal_width(STDOUT_FILENO));
  set_color(ColorWhen::kAuto, /*for_machines=*/false);
  CLI::App app{program.summary, "heddle"};
  app.set_version_flag("--version", program.version, "print the version");
  app.require_subcommand(1);
  app.formatter(help_formatter());
  app.set_help_flag("-h,--help", "print this help");
  app.set_help_all_flag("--help-all", "print the help with research flags, too");
  app.failure_message(CLI::FailureMessage::simple);
  Invocation invocation;
  CommonFlags common{invocation};
  common.declare(app);
  std::vector<std::pair<CLI::App*, RunFn>> commands;
  for (const auto& verb : program.verbs) {
    auto* sub = app.add_subcommand(verb.name, verb.summary);
    common.declare(*sub);
    Command command(*sub);
    commands.emplace_back(sub, verb.setup(command));
    for (auto* part : sub->get_subcommands({})) common.declare(*part);
  }
  try {
    auto args = arguments_of(app, argc, argv);
    std::ranges::reverse(args);  // as the parser takes them
    app.parse(std::move(args));
  } catch (const CLI::Success& asked) {  // for help or the version
    return after_printing(app.exit(asked));
  } catch (const CLI::ParseError& e) {
    return usage_error(program, app, e);
  }
  set_color(common.color, invocation.json);
  if (invocation.quiet && invocation.verbose)
    return report_error(invalid_input("--quiet and --verbose exclude each other"), invocation.json);
  const SignalsRaise signals(invocation.cancel);
  TerminalProgress progress;
  if (!invocation.quiet && !is_silent()) invocation.progress = &progress;
  for (auto& [sub, fn] : commands) {
    if (!sub->parsed()) continue;
    const bool has_own_log = sub->get_option_no_throw("--log-level") != nullptr;
    if (invocation.verbose && !has_own_log && !is_silent()) {
      set_log(LogLevel::kDebug, LogForm::kElapsed);
      log_debug([&] { return program.version; });
    }
    const auto status = fn(invocation);
    progress.finish();
    if (!status.ok()) return report_error(status.error(), invocation.json);
    return after_printing(*status);
  }
  return kExitBadInput;
}

Result<const CLI::App*> part_of(const CLI::App& app, const std::string& name) {
  std::vector<std::string> names;
  for (const auto* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (sub->get_name() == name) return sub;
    names.push_back(sub->get_name());
  }
  return invalid_input("unknown verb '" + name + "'" + did_you_mean(name, names));
}

}  // namespace

Result<std::string> help_of(const CLI::App& program, std::span<const std::string> path) {
  const CLI::App* app = &program;
  std::string parents;
  for (const auto& name : path) {
    parents += (parents.empty() ? "" : " ") + app->get_name();
    HEDDLE_ASSIGN_OR_RETURN(app, part_of(*app, name));
  }
  return app->get_formatter()->make_help(app, parents.empty() ? "heddle" : parents + " " + app->get_name(),
                                         CLI::AppFormatMode::Normal);
}

int run_program(const VerbProgram& program, int argc, char** argv) {
  supervise_rank();
  try {
    return run(program, argc, argv);
  } catch (const std::exception& e) {
    // Nothing below throws by design, so this is a bug or a lack of memory.
    std::fprintf(stderr, "heddle: internal error: %s\n", e.what());
    return kExitInternal;
  }
}

}  // namespace heddle
