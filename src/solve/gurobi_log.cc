// Parses the log of gurobi_cl, as written by releases 9 to 12.
#include <charconv>
#include <cmath>
#include <vector>

#include "gurobi.h"

namespace heddle {
namespace {

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    const size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    const size_t end = std::min(line.find_first_of(" \t\r"), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

std::optional<double> log_number(std::string_view word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

// The number after `label`, up to a comma or the end.
std::optional<double> behind(std::string_view line, std::string_view label) {
  const size_t at = line.find(label);
  if (at == std::string_view::npos) return std::nullopt;
  line.remove_prefix(at + label.size());
  line = line.substr(0, line.find(','));
  const auto words = words_of(line);
  return words.empty() ? std::nullopt : log_number(words[0]);
}

}  // namespace

std::optional<GurobiNews> parse_gurobi_progress(std::string_view line) {
  const auto words = words_of(line);
  // ... incumbent bound gap iterations-per-node time
  if (words.size() < 7 || words.back().size() < 2 || words.back().back() != 's') return std::nullopt;
  if (!log_number(words.back().substr(0, words.back().size() - 1))) return std::nullopt;
  const size_t n = words.size();
  const auto gap = words[n - 3];
  if (gap != "-" && gap.back() != '%') return std::nullopt;
  const auto bound = log_number(words[n - 4]);
  if (!bound) return std::nullopt;
  GurobiNews news;
  news.bound = *bound;
  if (const auto incumbent = log_number(words[n - 5]); incumbent && gap != "-") news.incumbent = *incumbent;
  return news;
}

GurobiVerdict parse_gurobi_log(std::string_view log) {
  GurobiVerdict verdict;
  const auto starts = [](std::string_view line, std::string_view with) {
    return line.substr(0, with.size()) == with;
  };
  while (!log.empty()) {
    const size_t end = log.find('\n');
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(end == std::string_view::npos ? log.size() : end + 1);
    if (starts(line, "Gurobi Optimizer version ")) {
      if (const auto words = words_of(line); words.size() > 3) verdict.version = words[3];
    } else if (starts(line, "Optimal solution found") || starts(line, "Optimal objective")) {
      verdict.status = SolveStatus::kOptimal;
      // For a model without integers the optimum is the bound.
      if (const auto value = behind(line, "Optimal objective")) verdict.bound = *value;
    } else if (starts(line, "Model is infeasible") || starts(line, "Infeasible model")) {
      verdict.status = SolveStatus::kInfeasible;
    } else if (starts(line, "Model is unbounded") || starts(line, "Unbounded model") ||
               starts(line, "Infeasible or unbounded model") ||
               starts(line, "Model is infeasible or unbounded")) {
      verdict.status = SolveStatus::kUnbounded;
    } else if (starts(line, "Best objective")) {
      if (const auto bound = behind(line, "best bound")) verdict.bound = *bound;
    } else if (starts(line, "Explored ")) {
      if (const auto nodes = behind(line, "Explored ")) verdict.nodes = static_cast<int64_t>(*nodes);
    } else if (const auto news = parse_gurobi_progress(line)) {
      verdict.bound = std::max(verdict.bound, news->bound);
    }
  }
  return verdict;
}

}  // namespace heddle
