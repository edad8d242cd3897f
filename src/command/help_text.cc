#include "help_text.h"

#include <CLI/CLI.hpp>

#include "heddle/command/command.h"

namespace heddle {
namespace {

constexpr size_t kWidth = 80;
constexpr size_t kHelpColumn = 26;

// A text that begins at `column` and stays there.
std::string wrapped_at(size_t column, const std::string& text) {
  return wrapped(text, kWidth, column, column);
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
    return names + wrapped_at(kHelpColumn, make_option_desc(option));
  }
  std::string make_subcommand(const CLI::App* sub) const override {
    const std::string name = "  " + sub->get_name();
    return name + std::string(kHelpColumn - name.size(), ' ') +
           wrapped_at(kHelpColumn, sub->get_description());
  }
  std::string make_description(const CLI::App* app) const override {
    return wrapped_at(0, app->get_description());
  }
  std::string make_footer(const CLI::App* app) const override {
    std::string text;
    std::istringstream lines(app->get_footer());
    for (std::string line; std::getline(lines, line);) text += wrapped_at(0, line);
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

}  // namespace heddle
