// MILPs as text for other solvers, in CPLEX's LP format.
#include <charconv>
#include <cmath>
#include <set>

#include "heddle/solve/milp.h"
#include "milp_check.h"

namespace heddle {
namespace {

// The shortest text that reads back as the same number.
std::string file_number(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value == 0 ? 0.0 : value).ptr;
  return {text, end};
}

// Names that every reader accepts: letters, digits, _ and ., not starting with a digit, a dot or an e (which
// could read as an exponent), no keyword of the LP format. Other names, repeated ones, and names that look
// like LETTER<index> become LETTER<index>.
class LpNames {
 public:
  explicit LpNames(char letter) : letter_(letter) {}

  // `two_sided`: the name will be written with the suffixes _lower and _upper.
  std::string take(const std::string& name, size_t index, bool two_sided = false) {
    const bool plain_like = name.size() > 1 && name[0] == letter_ && name[1] >= '0' && name[1] <= '9';
    const std::string lower = name + "_lower", upper = name + "_upper";
    const bool taken =
        used_.contains(name) || (two_sided && (used_.contains(lower) || used_.contains(upper)));
    if (plain_like || !fits(name) || taken) return letter_ + std::to_string(index);
    used_.insert(name);
    if (two_sided) used_.insert({lower, upper});
    return name;
  }

 private:
  static bool fits(const std::string& name) {
    if (name.empty() || name.size() > 200) return false;
    static const std::set<std::string> kWords = {
        "max",     "maximise", "maximize", "maximum",  "min",      "minimise", "minimize", "minimum",
        "st",      "such",     "subject",  "bounds",   "bound",    "binary",   "binaries", "bin",
        "general", "generals", "gen",      "integer",  "integers", "int",      "semi",     "semis",
        "sos",     "sos1",     "sos2",     "end",      "free",     "inf",      "infinity", "nan",
        "obj",     "rhs",      "ranges",   "objsense", "lazy",     "user",     "pwlobj",   "marker",
        "rows",    "columns",  "name",     "endata",   "rng",      "bnd",      "intorg",   "intend"};
    std::string lower;
    for (const char c : name) {
      const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
      const bool digit = (c >= '0' && c <= '9') || c == '.';
      if (!letter && !(digit && !lower.empty())) return false;
      lower += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
    return lower[0] != 'e' && !kWords.contains(lower);
  }

  char letter_;
  std::set<std::string> used_;
};

bool is_two_sided(const Milp::Row& row) {
  return std::isfinite(row.lower) && std::isfinite(row.upper) && row.lower != row.upper;
}

class LpWriter {
 public:
  explicit LpWriter(const Milp& model) : model_(model) {
    LpNames x('x'), r('r');
    for (size_t i = 0; i < model.variables().size(); ++i)
      variable_names_.push_back(x.take(model.variables()[i].name, i));
    const auto take = [&](const Milp::Row& row) {
      row_names_.push_back(r.take(row.name, row_names_.size(), is_two_sided(row)));
    };
    for (const Milp::Row& row : model.rows()) take(row);
    for (const auto& indicator : model.indicators()) take(indicator.row);
  }

  std::string write() {
    objective();
    out_ += "Subject To\n";
    for (size_t i = 0; i < model_.rows().size(); ++i) row(row_names_[i], "", model_.rows()[i]);
    for (size_t i = 0; i < model_.indicators().size(); ++i) {
      const auto& indicator = model_.indicators()[i];
      const std::string head = variable_names_[static_cast<size_t>(indicator.binary.index)] + " = " +
                               (indicator.value ? "1" : "0") + " -> ";
      row(row_names_[model_.rows().size() + i], head, indicator.row);
    }
    bounds();
    integers();
    return out_ + "End\n";
  }

 private:
  // " + 2 x - y", broken over several lines if long, because readers limit the length of a line.
  std::string sum(std::span<const Term> terms) const {
    std::string text;
    size_t line = 0;
    for (const Term& term : terms) {
      std::string part = term.coefficient < 0 ? " - " : " + ";
      part += file_number(std::fabs(term.coefficient)) + " " +
              variable_names_[static_cast<size_t>(term.var.index)];
      if (text.size() + part.size() - line > 200) {
        text += "\n  ";
        line = text.size();
      }
      text += part;
    }
    return text;
  }

  // Lists every variable in the objective, so that readers number them as the model does.
  void objective() {
    std::vector<Term> terms;
    for (size_t i = 0; i < model_.variables().size(); ++i) {
      terms.push_back({{static_cast<int32_t>(i)}, model_.variables()[i].cost});
    }
    out_ += "Minimize\n obj:" + sum(terms);
    const double constant = model_.constant();
    if (constant != 0) out_ += (constant < 0 ? " - " : " + ") + file_number(std::fabs(constant));
    out_ += '\n';
  }

  void row(const std::string& name, const std::string& head, const Milp::Row& row) {
    // A row without terms still has a meaning: 0 x is within its bounds.
    const std::vector<Term> nothing = {{{0}, 0}};
    const std::string text = head + sum(row.terms.empty() ? std::span<const Term>(nothing) : row.terms);
    if (row.lower == row.upper) {
      out_ += " " + name + ": " + text + " = " + file_number(row.lower) + "\n";
      return;
    }
    const bool both = is_two_sided(row);
    if (std::isfinite(row.lower)) {
      out_ += " " + name + (both ? "_lower" : "") + ": " + text + " >= " + file_number(row.lower) + "\n";
    }
    if (std::isfinite(row.upper)) {
      out_ += " " + name + (both ? "_upper" : "") + ": " + text + " <= " + file_number(row.upper) + "\n";
    }
  }

  static std::string bound(double value) {
    return std::isinf(value) ? (value > 0 ? "+inf" : "-inf") : file_number(value);
  }

  static bool is_plain_binary(const Milp::Variable& v) {
    return v.kind == VarKind::kBinary && v.lower == 0 && v.upper == 1;
  }

  void bounds() {
    out_ += "Bounds\n";
    for (size_t i = 0; i < model_.variables().size(); ++i) {
      const auto& v = model_.variables()[i];
      if (is_plain_binary(v)) continue;
      if (v.lower == -kNoBound && v.upper == kNoBound) {
        out_ += " " + variable_names_[i] + " free\n";
      } else {
        out_ += " " + bound(v.lower) + " <= " + variable_names_[i] + " <= " + bound(v.upper) + "\n";
      }
    }
  }

  void integers() {
    for (const bool binary : {false, true}) {
      std::string section;
      for (size_t i = 0; i < model_.variables().size(); ++i) {
        const auto& v = model_.variables()[i];
        if (v.kind != VarKind::kContinuous && is_plain_binary(v) == binary) {
          section += " " + variable_names_[i] + "\n";
        }
      }
      if (!section.empty()) out_ += (binary ? "Binaries\n" : "Generals\n") + section;
    }
  }

  const Milp& model_;
  std::vector<std::string> variable_names_;
  std::vector<std::string> row_names_;  // of rows, then of indicators
  std::string out_;
};

}  // namespace

Result<std::string> to_lp(const Milp& model) {
  HEDDLE_RETURN_IF_ERROR(check_model(model));
  if (model.variables().empty()) {
    return unsupported("the LP format cannot hold a model without variables");
  }
  return LpWriter(model).write();
}

}  // namespace heddle
