#include "why_html.h"

#include <fmt/format.h>

#include <algorithm>

#include "explain_tables.h"
#include "heddle/base/gap.h"
#include "heddle/base/units.h"
#include "heddle/report/run_tables.h"
#include "markup.h"

namespace heddle {
namespace {

std::string section(const std::string& title, const std::string& note) {
  return "<h3>" + escape_markup(title) + "</h3>\n" +
         (note.empty() ? "" : "<p class=\"muted\">" + escape_markup(note) + "</p>\n");
}

std::string bound_sentence(const Explanation& e) {
  const auto value = [&e](double us) { return objective_text(e.objective, e.batch, us); };
  std::string text = "Predicted " + value(e.value_us) + ", " + bound_text(value(e.bound.us)) + " (" +
                     e.bound.proof.text() + "), gap " + percent(e.gap) + ".";
  if (const auto& b = e.next_bottleneck)
    text += " Bottleneck: " + b->bottleneck + "; next: " + b->next + ", which would allow " +
            value(b->limit_us) + ".";
  return "<p>" + escape_markup(text) + "</p>\n";
}

std::string devices_section(const Explanation& e) {
  std::string out = section("Devices", "") +
                    "<div class=\"scroll\"><table><thead><tr><th>device</th><th class=\"text\">busy</th>"
                    "<th>segments</th><th>parameters</th></tr></thead><tbody>\n";
  for (const auto& d : e.devices)
    out += fmt::format(
        "<tr><td>{}<br><span class=\"muted\">{}</span></td><td style=\"text-align:left\"><span "
        "class=\"busy\">"
        "<i style=\"width:{:.1f}%\"></i></span>{}</td><td>{}</td><td>{}</td></tr>\n",
        escape_markup(d.device), escape_markup((d.used ? "" : "unused, ") + d.reason),
        100 * std::clamp(d.busy_share, 0.0, 1.0), percent(d.busy_share), d.segments,
        format_bytes(d.param_bytes));
  return out + "</tbody></table></div>\n";
}

std::string path_section(const Explanation& e) {
  std::string out = section("Critical path", path_shares_text(e)) + "<div class=\"share\">";
  for (const auto& [css, share] :
       {std::pair("run", e.compute_share), {"transfer", e.transfer_share}, {"load", e.load_share}})
    out += fmt::format("<i class=\"{}\" style=\"width:{:.2f}%\"></i>", css, 100 * share);
  return out + "</div>\n" + path_table(e).to_html();
}

// Lines of plain text, one paragraph each.
std::string paragraphs(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) out += "<p>" + escape_markup(text.substr(at, end - at)) + "</p>\n";
    at = end + 1;
  }
  return out;
}

}  // namespace

std::string why_html(const Explanation& e, const std::optional<PrecisionError>& error) {
  std::string out = "<h2>Why</h2>\n" + bound_sentence(e);
  for (const auto& warning : e.warnings)
    out += "<p class=\"note\"><b>Warning:</b> " + escape_markup(warning) + "</p>\n";
  out += devices_section(e) + path_section(e);
  if (!e.variants.empty()) out += section("Engines", kVariantsNote) + variants_table(e).to_html();
  out += e.suggestions.empty()
             ? section("What would help", kNoSuggestion)
             : section("What would help", kSuggestionsNote) + suggestions_table(e).to_html();
  if (!e.precision_text.empty() || error) out += section("Precision", "") + paragraphs(e.precision_text);
  if (e.precision_units) out += e.precision_units->to_html();
  if (error) out += paragraphs(precision_text(error));
  if (e.robustness && e.value_us > 0)
    out += section("On a busy machine", kRobustnessNote) + robustness_table(e).to_html();
  return out;
}

}  // namespace heddle
