// Declaration of flags and runs of verbs, without compiling the flag parser for each verb.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/base/control.h"
#include "heddle/base/errors.h"
#include "heddle/base/json_fwd.h"
#include "heddle/base/status.h"
#include "heddle/base/terminal.h"
#include "heddle/report/shown.h"
#include "heddle/report/text_table.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace heddle {

class Command;

// The arguments of every verb's run.
struct Invocation : Control {  // Ctrl-C raises `cancel`; `progress` draws on stderr, and is null with --quiet
  bool json = false;           // print JSON for machines on stdout, nothing else there
  bool quiet = false, verbose = false;
};

inline constexpr int kExitDone = 0;      // done
inline constexpr int kExitNo = 1;        // the answer is no: infeasible, failed verification
inline constexpr int kExitBadInput = 2;  // bad usage or input
inline constexpr int kExitInternal = 3;  // a bug in Heddle
inline constexpr int kExitInterrupted = 130;

// Returns the exit status, or an error that main prints.
using RunFn = std::function<Result<int>(const Invocation&)>;

struct Verb {
  const char* name;
  const char* summary;
  RunFn (*setup)(Command&);  // declares the flags and returns the function that runs
};

// Declares flags. The variables must outlive parsing and the run: keep them in the verb's options object.
class Command {
 public:
  explicit Command(CLI::App& app) : app_(app) {}
  // The heading in the help of the flags that follow.
  Command& group(const char* name);
  Command& positional(const std::string& name, std::string& out, const std::string& help,
                      bool required = true);
  // One or more.
  Command& positionals(const std::string& name, std::vector<std::string>& out, const std::string& help);
  // An empty text is refused; the same with list().
  Command& option(const std::string& flags, std::string& out, const std::string& help);
  Command& option(const std::string& flags, double& out, const std::string& help, double min, double max);
  // "10s", "500ms"; a bare number is in seconds.
  Command& seconds(const std::string& flags, double& out, const std::string& help, double min, double max);
  // The same for a flag whose value may be left out; it is `alone` then.
  Command& seconds_if_given(const std::string& flags, std::optional<double>& out, const char* alone,
                            const std::string& help, double min, double max);
  // "200/s", "12k/s"; a bare number is per second.
  Command& rate(const std::string& flags, double& out, const std::string& help, double min, double max);
  // "25Gbit/s", "3GB/s"; a bare number is in bytes per second.
  Command& bandwidth(const std::string& flags, double& out, const std::string& help, double min, double max);
  // "64MiB"; a bare number is in bytes.
  Command& bytes(const std::string& flags, int64_t& out, const std::string& help, int64_t min, int64_t max);
  Command& bytes(const std::string& flags, std::optional<int64_t>& out, const std::string& help, int64_t min,
                 int64_t max);
  // A whole number such as 200 or 10k, also into an optional.
  template <class Number>
  Command& option(const std::string& flags, Number& out, const std::string& help, int64_t min, int64_t max) {
    return number(
        flags, [&out](int64_t value) { set(out, value); }, help, min, max);
  }
  // May be given several times.
  Command& list(const std::string& flags, std::vector<std::string>& out, const std::string& help);
  Command& flag(const std::string& flags, bool& out, const std::string& help);
  // Clears `out`: --no-verify.
  Command& switch_off(const std::string& flags, bool& out, const std::string& help);
  Command& footer(const std::string& text);
  // One of these must follow the verb: `heddle fleet plan`. The verb's own flags (--json, --quiet) may follow
  // them.
  RunFn subverbs(std::span<const Verb> verbs);
  // The whole program, with all verbs once the run begins.
  const CLI::App& program() const;

 private:
  struct Quantity {
    const char* value_name;
    const char* expected;
    std::function<std::optional<double>(std::string_view)> read;
  };
  Command& real(const std::string& flags, double& out, const std::string& help, double min, double max,
                const Quantity& quantity);
  CLI::Option& grouped(CLI::Option* option) const;
  Command& number(const std::string& flags, const std::function<void(int64_t)>& take, const std::string& help,
                  int64_t min, int64_t max);
  template <class Number>
  static void set(Number& out, int64_t value) {
    out = static_cast<Number>(value);
  }
  template <class Number>
  static void set(std::optional<Number>& out, int64_t value) {
    out = static_cast<Number>(value);
  }
  CLI::App& app_;
  std::string group_;
};

// The heading of flags that --help-all alone shows.
inline constexpr const char* kResearchFlags = "Research";

int exit_status(Code code);

// The value beside the name, or an error that lists the names.
Error unknown_name(const char* flag, const std::string& name, const std::vector<std::string>& known);
template <class Value>
Result<Value> named_value(const char* flag, const std::string& name,
                          const std::vector<std::pair<std::string, Value>>& values) {
  std::vector<std::string> names;
  for (const auto& [known, value] : values) {
    if (known == name) return value;
    names.push_back(known);
  }
  return unknown_name(flag, name, names);
}

// To standard output or `to`. Unlike fmt::print() they do not throw if a write fails: main looks at standard output
// at the end, and nobody reads a standard error that is closed.
template <class... Args>
void print(std::FILE* to, fmt::format_string<const Args&...> format, const Args&... args) {
  write_text(to, fmt::format(format, args...));
}
template <class... Args>
void print(fmt::format_string<const Args&...> format, const Args&... args) {
  heddle::print(stdout, format, args...);
}

// Ends the progress line and prints one document.
void show_json(const Invocation& invocation, const Json& json);
// The same, or the text for people without --json.
void show_result(const Invocation& invocation, const Json& json, const std::string& text);
inline void show_result(const Invocation& invocation, const Shown& shown) {
  show_result(invocation, shown.json, shown.text);
}

// Fails if the path's folder does not exist. Called before long work, whose result a mistyped path would
// lose. An empty path is fine.
Status check_output(const std::string& path);

// "NAME=NUMBER" as the value of a flag or argument; the name may hold "=".
Result<std::pair<std::string, double>> assignment(const std::string& flag, const std::string& text);

}  // namespace heddle
