// Runs gurobi_cl: a folder of files, a child process, and a check of every answer.
#include "gurobi.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "heddle/base/spelling.h"
#include "milp_check.h"
#include "solve_options.h"

extern char** environ;

namespace heddle {
namespace {

namespace fs = std::filesystem;
using GurobiClock = std::chrono::steady_clock;

constexpr double kStopEarly = 0.2, kStopEarlyShare = 0.1;  // s, and share of the time
constexpr double kGrace = 0.5;                             // s between interrupt and kill
constexpr double kLeastLimit = 0.01;                       // s
constexpr size_t kMostLog = 64 << 20;                      // bytes of log kept
constexpr size_t kMostAnswer = 1 << 30;
// Relative precision of printed bounds: at least ten digits.
constexpr double kPrinted = 1e-9;

double seconds_from(GurobiClock::time_point begin) {
  return std::chrono::duration<double>(GurobiClock::now() - begin).count();
}

bool can_run(const fs::path& file) {
  std::error_code error;
  return fs::is_regular_file(file, error) && access(file.c_str(), X_OK) == 0;
}

std::string text_of(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

class Folder {
 public:
  Folder() {
    std::error_code error;
    const fs::path base = fs::temp_directory_path(error);
    std::string name = ((error ? fs::path("/tmp") : base) / "heddle-gurobi-XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~Folder() {
    std::error_code error;
    if (!path_.empty()) fs::remove_all(path_, error);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  bool ok() const { return !path_.empty(); }
  std::string file(const char* name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

Status write_file(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (out) return {};
  return Error(Code::kIo,
               "cannot write the model for Gurobi; free some space or set TMPDIR to another folder")
      .with_context(path);
}

// The same model with the names x0, x1, ..., so that the answer can be parsed without a table of names.
Milp without_names(const Milp& model) {
  Milp plain;
  for (const auto& v : model.variables()) {
    const Var var = v.kind == VarKind::kBinary    ? plain.add_binary()
                    : v.kind == VarKind::kInteger ? plain.add_integer(v.lower, v.upper)
                                                  : plain.add_continuous(v.lower, v.upper);
    if (v.kind == VarKind::kBinary) plain.set_bounds(var, v.lower, v.upper);
    plain.add_cost(var, v.cost);
  }
  for (const auto& row : model.rows()) plain.add_row(row.lower, row.terms, row.upper);
  for (const auto& i : model.indicators()) {
    plain.add_indicator(i.binary, i.value, i.row.lower, i.row.terms, i.row.upper);
  }
  plain.add_constant(model.constant());
  return plain;
}

class GurobiRun {
 public:
  GurobiRun(const Milp& model, bool integers, double work, const SolveOptions& options,
            const std::string& program)
      : model_(model), integers_(integers), work_(work), options_(options), program_(program) {}

  Result<Solution> run() {
    HEDDLE_RETURN_IF_ERROR(check_model(model_));
    HEDDLE_RETURN_IF_ERROR(check_options(options_));
    take_start();
    HEDDLE_RETURN_IF_ERROR(write());
    HEDDLE_RETURN_IF_ERROR(execute());
    auto answer = judge();
    if (!answer.ok()) return std::move(answer).error().with_context(name());
    answer->solver = name();
    answer->seconds = seconds_from(begin_);
    return answer;
  }

 private:
  std::string name() const { return verdict_.version.empty() ? "Gurobi" : "Gurobi " + verdict_.version; }

  // Keeps a complete feasible start as the first solution.
  void take_start() {
    const size_t n = model_.variables().size();
    std::vector<double> values(n, std::nan(""));
    for (const auto& [var, value] : model_.start()) values[static_cast<size_t>(var.index)] = value;
    const bool complete = std::none_of(values.begin(), values.end(), [](double v) { return std::isnan(v); });
    if (complete && violation(model_, values).empty() && model_.objective(values) < options_.cutoff)
      best_ = std::move(values);
  }

  Status write() {
    if (!folder_.ok()) {
      return Error(Code::kIo,
                   "cannot make a temporary folder for Gurobi's files; set TMPDIR to one that can be "
                   "written to");
    }
    HEDDLE_ASSIGN_OR_RETURN(const std::string lp, to_lp(without_names(model_)));
    HEDDLE_RETURN_IF_ERROR(write_file(folder_.file("model.lp"), lp));
    if (model_.start().empty() || !integers_) return {};
    std::string start;
    for (const auto& [var, value] : model_.start())
      start += "x" + std::to_string(var.index) + " " + text_of(value) + "\n";
    return write_file(folder_.file("start.mst"), start);
  }

  std::vector<std::string> arguments() const {
    std::vector<std::string> a{program_};
    const double left = options_.deadline.seconds_left();
    if (std::isfinite(left))
      a.push_back("TimeLimit=" +
                  text_of(std::max(kLeastLimit, left - std::min(kStopEarly, kStopEarlyShare * left))));
    if (std::isfinite(work_)) a.push_back("WorkLimit=" + text_of(work_));
    a.push_back("Threads=" + std::to_string(options_.threads));
    a.push_back("Seed=" + std::to_string(options_.seed % 2'000'000'000));
    a.push_back("MIPGap=" + text_of(options_.rel_gap));
    a.push_back("MIPGapAbs=" + text_of(options_.abs_gap));
    // Rounded integers must still be feasible: violation() in milp.h is as strict.
    a.push_back("IntFeasTol=1e-9");
    a.push_back("FeasibilityTol=1e-7");
    a.push_back("OptimalityTol=1e-7");
    a.push_back("LogFile=");
    a.push_back("ResultFile=" + folder_.file("answer.sol"));
    std::error_code error;
    if (fs::exists(folder_.file("start.mst"), error)) a.push_back("InputFile=" + folder_.file("start.mst"));
    a.push_back(folder_.file("model.lp"));
    return a;
  }

  Status execute() {
    int pipe_ends[2];
    if (pipe2(pipe_ends, O_CLOEXEC) != 0) return Error(Code::kIo, "cannot make a pipe to Gurobi");
    const std::vector<std::string> words = arguments();
    std::vector<char*> argv;
    for (const auto& w : words) argv.push_back(const_cast<char*>(w.c_str()));
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDERR_FILENO);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    // A process group of its own: Ctrl-C reaches only Heddle, which passes it on; wrapper scripts are killed
    // as a whole.
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
    pid_t child = -1;
    const int failed = posix_spawn(&child, program_.c_str(), &actions, &attributes, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    close(pipe_ends[1]);
    if (failed != 0) {
      close(pipe_ends[0]);
      return Error(Code::kUnsupported,
                   "cannot be started; set HEDDLE_GUROBI to a gurobi_cl that runs, or "
                   "HEDDLE_MILP_SOLVER=highs")
          .with_context(program_);
    }
    listen(pipe_ends[0], child);
    close(pipe_ends[0]);
    return {};
  }

  // Reads the log until the child has ended; interrupts and kills the child after the deadline.
  void listen(int from, pid_t child) {
    GurobiClock::time_point asked{};
    bool open = true, killed = false;
    while (true) {
      if (open) {
        pollfd wait{from, POLLIN, 0};
        poll(&wait, 1, 20);
        char buffer[4096];
        if (wait.revents != 0) {
          const ssize_t got = read(from, buffer, sizeof buffer);
          if (got > 0) hear({buffer, static_cast<size_t>(got)});
          if (got == 0) open = false;
        }
      }
      const pid_t ended = waitpid(child, &exit_status_, WNOHANG);
      if (ended == child || ended < 0) break;
      if (!open) poll(nullptr, 0, 5);
      if (!options_.deadline.should_stop() || killed) continue;
      if (asked == GurobiClock::time_point{}) {
        asked = GurobiClock::now();
        stopped_ = true;
        kill(-child, SIGINT);
      } else if (seconds_from(asked) > kGrace) {
        kill(-child, SIGKILL);
        killed = true;
      }
    }
    // Kill the remaining children of wrapper scripts, so that they neither survive nor keep the pipe open.
    kill(-child, SIGKILL);
    fcntl(from, F_SETFL, O_NONBLOCK);
    char buffer[4096];
    for (ssize_t got; open && (got = read(from, buffer, sizeof buffer)) > 0;)
      hear({buffer, static_cast<size_t>(got)});
    verdict_ = parse_gurobi_log(log_);
  }

  void hear(std::string_view text) {
    if (log_.size() + text.size() > kMostLog) log_.erase(0, log_.size() / 2);
    const size_t from = log_.rfind('\n') == std::string::npos ? 0 : log_.rfind('\n') + 1;
    log_ += text;
    if (!options_.on_progress) return;
    for (size_t begin = from, end; (end = log_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      const auto news = parse_gurobi_progress(std::string_view(log_).substr(begin, end - begin));
      if (!news) continue;
      options_.on_progress({.elapsed_s = seconds_from(begin_),
                            .incumbent = news->incumbent,
                            .bound = news->bound,
                            .values = {}});
    }
  }

  Error failed(const std::string& what) const {
    // The last line usually gives the cause: licence, memory and so on.
    std::string last;
    std::istringstream lines(log_.size() > 4000 ? log_.substr(log_.size() - 4000) : log_);
    for (std::string line; std::getline(lines, line);) {
      if (line.find_first_not_of(" \t\r") != std::string::npos) last = line;
    }
    return Error(Code::kInternal, what + (last.empty() ? "" : "; it said last: " + quote_text(last)) +
                                      "; try HEDDLE_MILP_SOLVER=highs");
  }

  // Empty if there is no file; an error if it does not hold one number per variable.
  Result<std::vector<double>> read_answer() const {
    const std::string path = folder_.file("answer.sol");
    std::error_code error;
    if (!fs::exists(path, error)) return std::vector<double>();
    if (fs::file_size(path, error) > kMostAnswer || error)
      return failed("its solution file cannot be read: it is too large");
    std::ifstream in(path, std::ios::binary);
    std::vector<double> values(model_.variables().size(), std::nan(""));
    size_t line_number = 0, known = 0;
    for (std::string line; std::getline(in, line);) {
      ++line_number;
      if (line.empty() || line[0] == '#') continue;
      std::istringstream words(line);
      std::string variable, value, more;
      words >> variable >> value;
      size_t index = 0;
      double parsed = 0;
      const auto reads = [](const char* begin, const char* end, auto& number) {
        const auto [at, code] = std::from_chars(begin, end, number);
        return begin < end && at == end && code == std::errc();
      };
      const char *name_end = variable.data() + variable.size(), *value_end = value.data() + value.size();
      const bool named = variable.size() > 1 && variable[0] == 'x' &&
                         reads(variable.data() + 1, name_end, index) && index < values.size();
      const bool valued = reads(value.data(), value_end, parsed) && std::isfinite(parsed);
      if (!named || !valued || (words >> more) || !std::isnan(values[index])) {
        return failed("its solution file makes no sense at line " + std::to_string(line_number) +
                      ": expected the name of a variable, once, and its value");
      }
      values[index] = parsed;
      ++known;
    }
    if (known == 0) return std::vector<double>();
    if (known < values.size()) {
      return failed("its solution file has values for " + std::to_string(known) + " of " +
                    std::to_string(values.size()) + " variables");
    }
    return values;
  }

  Result<Solution> judge() {
    const bool ended_well = WIFEXITED(exit_status_) && WEXITSTATUS(exit_status_) == 0;
    if (!ended_well && !stopped_) {
      return failed(WIFSIGNALED(exit_status_)
                        ? "it was ended by signal " + std::to_string(WTERMSIG(exit_status_))
                        : "it ended with status " + std::to_string(WEXITSTATUS(exit_status_)));
    }
    // Ignore a file that was being written when the program was killed.
    std::vector<double> values;
    if (ended_well) {
      HEDDLE_ASSIGN_OR_RETURN(values, read_answer());
    }
    if (!values.empty()) {
      for (size_t i = 0; i < values.size(); ++i) {
        const auto& v = model_.variables()[i];
        if (v.kind != VarKind::kContinuous) values[i] = std::round(values[i]);
        // Larger deviations from a bound are left for violation() to report.
        if (std::fabs(std::clamp(values[i], v.lower, v.upper) - values[i]) <= 1e-6)
          values[i] = std::clamp(values[i], v.lower, v.upper) + 0.0;
      }
      if (const std::string fault = violation(model_, values); !fault.empty())
        return failed("its solution does not fit the model: " + fault);
      const double objective = model_.objective(values);
      if (objective < options_.cutoff && (best_.empty() || objective < model_.objective(best_)))
        best_ = std::move(values);
    }
    return conclude();
  }

  Result<Solution> conclude() const {
    Solution solution;
    solution.nodes = verdict_.nodes;
    const double bound = verdict_.bound - kPrinted * std::fabs(verdict_.bound);
    if (verdict_.status == SolveStatus::kInfeasible) {
      if (!best_.empty()) return failed("it calls the model infeasible, which has a solution");
      solution.status = SolveStatus::kInfeasible;
      solution.bound = options_.cutoff;
      return solution;
    }
    if (verdict_.status == SolveStatus::kUnbounded) {
      solution.status = SolveStatus::kUnbounded;
      return solution;
    }
    if (best_.empty()) {
      const bool cut = std::isfinite(options_.cutoff) && bound >= options_.cutoff;
      if (verdict_.status == SolveStatus::kOptimal && !std::isfinite(options_.cutoff))
        return failed("it tells of an optimum but wrote no solution");
      const bool nothing_better = cut || verdict_.status == SolveStatus::kOptimal;
      solution.status = nothing_better ? SolveStatus::kInfeasible : SolveStatus::kUnknown;
      solution.bound = nothing_better ? options_.cutoff : bound;
      return solution;
    }
    solution.values = best_;
    solution.objective = model_.objective(best_);
    solution.bound = std::min(bound, solution.objective);
    const double gap = std::max(options_.abs_gap, options_.rel_gap * std::fabs(solution.objective)) +
                       1e-6 * std::max(1.0, std::fabs(solution.objective));
    // The reported status is not enough: also require the bound.
    const bool close = solution.objective - solution.bound <= gap;
    solution.status = close ? SolveStatus::kOptimal : SolveStatus::kFeasible;
    return solution;
  }

  const Milp& model_;
  const bool integers_;
  const double work_;
  const SolveOptions& options_;
  const std::string& program_;
  const GurobiClock::time_point begin_ = GurobiClock::now();
  const Folder folder_;
  std::vector<double> best_;
  std::string log_;
  GurobiVerdict verdict_;
  int exit_status_ = 0;
  bool stopped_ = false;
};

}  // namespace

std::optional<std::string> find_gurobi() {
  if (const char* given = std::getenv("HEDDLE_GUROBI"); given != nullptr && *given != 0) {
    return can_run(given) ? std::optional<std::string>(given) : std::nullopt;
  }
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path file = fs::path(folder.empty() ? "." : folder) / "gurobi_cl";
    if (can_run(file)) return file.string();
  }
  return std::nullopt;
}

Result<std::optional<std::string>> gurobi_to_use() {
  const char* asked = std::getenv("HEDDLE_MILP_SOLVER");
  const std::string_view solver = asked != nullptr ? asked : "";
  if (solver.empty() || solver == "highs") return std::optional<std::string>();
  if (solver != "gurobi") {
    return Error(Code::kInvalidInput,
                 "HEDDLE_MILP_SOLVER is " + quote_text(std::string(solver)) + ", expected highs or gurobi");
  }
  auto program = find_gurobi();
  if (program) return program;
  const char* given = std::getenv("HEDDLE_GUROBI");
  const std::string where = given != nullptr && *given != 0
                                ? quote_text(given) + " of HEDDLE_GUROBI is no program"
                                : "no gurobi_cl is on the PATH";
  return Error(Code::kUnsupported, "HEDDLE_MILP_SOLVER asks for gurobi but " + where +
                                       "; set HEDDLE_GUROBI to its path, or HEDDLE_MILP_SOLVER=highs");
}

Result<Solution> solve_by_gurobi(const Milp& model, bool integers, double work, const SolveOptions& options,
                                 const std::string& program) {
  return GurobiRun(model, integers, work, options, program).run();
}

}  // namespace heddle
