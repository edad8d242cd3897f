// The heddle program: flags to verbs, signals to cancellation, errors to messages and exit statuses.
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "build_text.h"
#include "command.h"
#include "heddle/base/json.h"
#include "heddle/base/log.h"
#include "heddle/base/spelling.h"
#include "heddle/base/terminal.h"
#include "heddle/cost/profile_store.h"
#include "heddle/graph/model_content.h"
#include "heddle/runtime/transport.h"
#include "shell/help_text.h"

namespace heddle::cli {
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

// Of several ranks only the first prints.
bool is_silent() { return rank_environment().rank > 0; }

int fail(const Error& error, bool json) {
  if (is_silent()) return exit_status(error.code());
  if (json) {
    const Json j = {{"error", {{"code", code_name(error.code())}, {"message", error.to_string()}}}};
    std::printf("%s\n", json_text(j, 1).c_str());
  }
  print(stderr, "{} {}\n", painted_error(Ink::kRed, "heddle:"), error.to_string());
  return exit_status(error.code());
}

// Verbs that have another name than in earlier builds, behind the program or verb that they belonged to.
constexpr std::pair<const char*, const char*> kRenamed[] = {
    {"heddle load", "loadtest"},         {"heddle selftest", "doctor"},     {"fleet status", "server status"},
    {"fleet add", "server add"},         {"fleet remove", "server remove"}, {"fleet drain", "server drain"},
    {"fleet undrain", "server undrain"}, {"fleet switch", "server switch"},
};

// The parser's messages in words that say what to do.
std::string argument_message(const CLI::ParseError& error) {
  const std::string text = error.what();
  const std::string flag = text.substr(0, text.find(": "));
  if (error.get_name() != "ArgumentMismatch" || flag == text) return text;
  if (text.find("At Most 1 required") != std::string::npos) return flag + " is given more than once";
  return flag + " needs a value";
}

// Names the first unexpected argument and the nearest flag or verb; without one, the parser's own message.
std::string usage_message(const CLI::App& where, bool top, const CLI::ParseError& error) {
  auto extras = where.remaining(true);
  // Arguments that a part of a verb does not know fall through to the verb.
  for (const auto* app = where.get_parent(); extras.empty() && app != nullptr; app = app->get_parent())
    extras = app->remaining(true);
  if (extras.empty())
    return dynamic_cast<const CLI::RequiredError*>(&error) == nullptr ? argument_message(error)
           : top ? "needs a verb, for example `heddle plan MODEL`"
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
  for (const auto& [old, now] : kRenamed)
    if (parts && !flag && where.get_name() + " " + extra == old)
      return "'" + extra + "' is now `heddle " + now + "`";
  const char* what = flag ? "unknown flag '" : parts ? "unknown verb '" : "unexpected argument '";
  return what + extra + "'" + (flag || parts ? did_you_mean(extra.substr(0, extra.find('=')), names) : "");
}

int usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* where = &app;
  std::string command = "heddle";
  while (!where->get_subcommands().empty()) {
    where = where->get_subcommands().front();
    command += " " + where->get_name();
  }
  if (is_silent()) return kExitBadInput;
  const bool top = where == &app;
  print(stderr, "{} {}\nSee `{} --help`.\n", painted_error(Ink::kRed, command + ":"),
        usage_message(*where, top, error), command);
  return kExitBadInput;
}

volatile std::sig_atomic_t g_rank_process = 0;

void pass_on(int signal) {
  if (g_rank_process > 0) kill(static_cast<pid_t>(g_rank_process), signal);
}

[[noreturn]] void wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) _exit(kExitInternal);
  }
  if (WIFEXITED(status)) _exit(WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  std::fprintf(stderr, "heddle: rank %d: its process %d was ended by signal %d (%s); this ends the run\n",
               rank_environment().rank, static_cast<int>(child), signal, strsignal(signal));
  _exit(kExitNo);
}

// A supervisor reports a rank that a signal kills. Under mpirun and similar launchers: forks, and returns in
// the child, which becomes the rank. The parent passes signals on, waits, and exits with the child's status;
// if a signal ended the child, it says so and exits with kExitNo, upon which the launcher ends the other
// ranks. The child does not outlive its parent. Does nothing for a single rank. Call it before any thread is
// started.
void supervise_rank() {
  if (rank_environment().size < 2) return;
  // Signals wait until they can be passed to the child.
  sigset_t passed, before;
  sigemptyset(&passed);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2}) sigaddset(&passed, signal);
  sigprocmask(SIG_BLOCK, &passed, &before);
  const pid_t self = getpid(), child = fork();
  if (child > 0) {
    g_rank_process = static_cast<std::sig_atomic_t>(child);
    struct sigaction action = {};
    action.sa_handler = pass_on;
    for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2}) sigaction(signal, &action, nullptr);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    wait_for(child);
  }
  // If the fork failed (child < 0), this process is the rank, without a supervisor.
  if (child == 0) {
    setpgid(0, 0);  // mpirun signals the whole group; the child must not get a signal twice
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != self) _exit(kExitNo);
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
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

int run(int argc, char** argv) {
  // Nothing is cut where a program or a file reads the tables.
  set_table_width(terminal_width(STDOUT_FILENO));
  set_color(ColorWhen::kAuto, /*for_machines=*/false);
  CLI::App app{"Plans, runs and explains neural networks on unequal accelerators.", "heddle"};
  app.set_version_flag("--version", build_text(), "print the version");
  app.require_subcommand(1);
  app.formatter(help_formatter());
  app.set_help_flag("-h,--help", "print this help");
  app.set_help_all_flag("--help-all", "print the help with research flags, too");
  app.failure_message(CLI::FailureMessage::simple);
  Invocation invocation;
  CommonFlags common{invocation};
  common.declare(app);
  std::vector<std::pair<CLI::App*, RunFn>> commands;
  for (const auto& verb : verbs()) {
    auto* sub = app.add_subcommand(verb.name, verb.summary);
    common.declare(*sub);
    Command command(*sub);
    commands.emplace_back(sub, verb.setup(command));
    for (auto* part : sub->get_subcommands({})) common.declare(*part);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForAllHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForVersion& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    return usage_error(app, e);
  }
  set_color(common.color, invocation.json);
  if (invocation.quiet && invocation.verbose)
    return fail(invalid_input("--quiet and --verbose exclude each other"), invocation.json);
  install_signal_handlers(invocation.cancel);
  keep_imports_in((std::filesystem::path(ProfileStore::default_path()).parent_path() / "imported").string());
  TerminalProgress progress;
  if (!invocation.quiet && !is_silent()) invocation.progress = &progress;
  for (auto& [sub, fn] : commands) {
    if (!sub->parsed()) continue;
    const bool has_own_log = sub->get_option_no_throw("--log-level") != nullptr;
    if (invocation.verbose && !has_own_log && !is_silent()) begin_log(LogLevel::kDebug, LogForm::kElapsed);
    const auto status = fn(invocation);
    progress.finish();
    if (!status.ok()) return fail(status.error(), invocation.json);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      pollfd reader{STDOUT_FILENO, 0, 0};
      if (poll(&reader, 1, 0) == 1 && (reader.revents & POLLERR) != 0) return *status;  // it has seen enough
      std::fprintf(stderr, "heddle: cannot write to standard output\n");
      return kExitBadInput;
    }
    return *status;
  }
  return kExitBadInput;
}

}  // namespace
}  // namespace heddle::cli

int main(int argc, char** argv) {
  heddle::cli::supervise_rank();
  try {
    return heddle::cli::run(argc, argv);
  } catch (const std::exception& e) {
    // Nothing below throws by design, so this is a bug or a lack of memory.
    std::fprintf(stderr, "heddle: internal error: %s\n", e.what());
    return heddle::cli::kExitInternal;
  }
}
