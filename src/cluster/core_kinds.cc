#include "core_kinds.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "heddle/base/file.h"
#include "heddle/base/numbers.h"

namespace heddle {
namespace {

// Whether a list of CPUs ("0-7,16") has this one.
bool lists(const std::string& text, int cpu) {
  std::istringstream ranges(text);
  for (std::string range; std::getline(ranges, range, ',');) {
    const size_t dash = range.find('-');
    const auto first = parse_number<int>(range.substr(0, dash)).value_or(-1);
    const auto last =
        dash == std::string::npos ? first : parse_number<int>(range.substr(dash + 1)).value_or(-1);
    if (first >= 0 && first <= cpu && cpu <= last) return true;
  }
  return false;
}

std::string kind_of(int cpu) {
  for (const char* kind : {"core", "atom"})
    if (lists(first_line(fmt::format("/sys/devices/cpu_{}/cpus", kind)), cpu)) return kind;
  const auto capacity = first_line(fmt::format("/sys/devices/system/cpu/cpu{}/cpu_capacity", cpu));
  return parse_number<int>(capacity) ? "capacity" + capacity : "";
}

}  // namespace

CorePlace core_place(int cpu) {
  const std::string topology = fmt::format("/sys/devices/system/cpu/cpu{}/topology/", cpu);
  return {parse_number<int64_t>(first_line(topology + "physical_package_id")).value_or(0),
          parse_number<int64_t>(first_line(topology + "core_id")).value_or(cpu), kind_of(cpu)};
}

std::vector<std::string> core_kinds(const std::vector<std::vector<int>>& sets,
                                    const std::function<CorePlace(int)>& place) {
  std::map<int, CorePlace> places;
  for (const auto& set : sets)
    for (const int cpu : set)
      if (!places.contains(cpu)) places[cpu] = place(cpu);
  std::vector<std::string> texts;
  std::map<size_t, std::set<std::string>> of_size;
  for (const auto& set : sets) {
    std::map<std::string, std::set<std::pair<int64_t, int64_t>>> physical;
    for (const int cpu : set) physical[places[cpu].kind].emplace(places[cpu].package, places[cpu].core);
    std::string text;
    for (const auto& [kind, cores] : physical)
      text += fmt::format("{}{}{}p", text.empty() ? "" : "+", kind, cores.size());
    of_size[set.size()].insert(text);
    texts.push_back(std::move(text));
  }
  for (size_t i = 0; i < sets.size(); ++i)
    if (of_size[sets[i].size()].size() == 1) texts[i].clear();
  return texts;
}

}  // namespace heddle
