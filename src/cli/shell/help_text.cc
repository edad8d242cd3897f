#include "help_text.h"

#include <CLI/CLI.hpp>

#include "command.h"

namespace heddle::cli {
namespace {

constexpr size_t kWidth = 80;
constexpr size_t kHelpColumn = 26;

// Breaks lines at blanks. The first one begins at `column`, to which the others are indented.
std::string wrapped(const std::string& text, size_t column) {
  std::string out, word;
  size_t at = column;
  std::istringstream in(text);
  while (in >> word) {
    if (at > column && at + 1 + word.size() > kWidth) {
      out += "\n" + std::string(column, ' ');
      at = column;
    }
    if (at > column) {
      out += ' ';
      ++at;
    }
    out += word;
    at += word.size();
  }
  return out + "\n";
}

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    all_ = mode == CLI::AppFormatMode::All;
    // Each part has its own help; --help-all is about flags.
    std::string text = Formatter::make_help(
        app, std::move(name), all_ && app->get_parent() != nullptr ? CLI::AppFormatMode::Normal : mode);
    for (size_t at = 0; (at = text.find("\n\n\n", at)) != std::string::npos;) text.erase(at, 1);
    return text;
  }
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override {
    if (group == kResearchFlags && !all_)
      return "\n" + std::to_string(options.size()) + " more flags are for research: --help-all shows them.\n";
    return Formatter::make_group(std::move(group), is_positional, std::move(options));
  }
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    if (option->check_name("--help-all")) return "";  // the line about research flags names it
    std::string names = "  " + make_option_name(option, is_positional);
    if (!is_positional && option->get_items_expected_max() > 0) names += " " + option->get_type_name();
    names += names.size() + 2 > kHelpColumn ? "\n" + std::string(kHelpColumn, ' ')
                                            : std::string(kHelpColumn - names.size(), ' ');
    return names + wrapped(make_option_desc(option), kHelpColumn);
  }
  std::string make_subcommand(const CLI::App* sub) const override {
    const std::string name = "  " + sub->get_name();
    return name + std::string(kHelpColumn - name.size(), ' ') + wrapped(sub->get_description(), kHelpColumn);
  }
  std::string make_description(const CLI::App* app) const override {
    return wrapped(app->get_description(), 0);
  }
  std::string make_footer(const CLI::App* app) const override {
    std::string text;
    std::istringstream lines(app->get_footer());
    for (std::string line; std::getline(lines, line);) text += wrapped(line, 0);
    return text.empty() ? "" : "\n" + text;
  }

 private:
  mutable bool all_ = false;
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_formatter() {
  auto formatter = std::make_shared<HelpFormatter>();
  formatter->column_width(kHelpColumn);
  return formatter;
}

}  // namespace heddle::cli
