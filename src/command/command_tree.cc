#include "heddle/command/command_tree.h"

#include <CLI/CLI.hpp>

namespace heddle {
namespace {

FlagInfo flag_info(const CLI::Option& option) {
  FlagInfo info;
  info.positional = !option.nonpositional();
  for (const auto& name : option.get_lnames()) info.names.push_back("--" + name);
  for (const auto& name : option.get_snames()) info.names.push_back("-" + name);
  if (info.positional) info.names = {option.get_name()};
  info.help = option.get_description();
  // "N:INT in [1 - 8]"
  if (option.get_items_expected_max() > 0)
    info.value = option.get_type_name().substr(0, option.get_type_name().find(':'));
  info.required = option.get_required();
  info.repeatable = option.get_items_expected_max() > 1 ||
                    option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
  return info;
}

}  // namespace

CommandInfo command_tree(const CLI::App& app) {
  CommandInfo info;
  info.name = app.get_name();
  info.summary = app.get_description();
  info.footer = app.get_footer();
  for (const auto* option : app.get_options()) info.flags.push_back(flag_info(*option));
  for (const auto* part : app.get_subcommands([](const CLI::App*) { return true; }))
    info.parts.push_back(command_tree(*part));
  return info;
}

std::string path_to(const std::string& path, const CommandInfo& part) {
  return path.empty() ? part.name : path + " " + part.name;
}

}  // namespace heddle
