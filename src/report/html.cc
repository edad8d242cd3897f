// One page with the timeline, zoom and pan, and each step's predicted and measured time. It needs no network.
#include <cstdio>

#include "heddle/base/units.h"
#include "heddle/report/timeline_view.h"
#include "markup.h"

namespace heddle {
namespace {

constexpr char kHead[] = R"html(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
)html";

constexpr char kStyle[] = R"html(<style>
:root{color-scheme:light dark;--ink:#1f2933;--muted:#667788;--line:#d8dee5;--paper:#ffffff;--soft:#f4f6f8}
@media (prefers-color-scheme:dark){:root{--ink:#e5e9ee;--muted:#93a1b0;--line:#343e49;--paper:#14181d;--soft:#1c2229}}
body{font:14px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif;color:var(--ink);background:var(--paper);
 margin:0;padding:16px 20px}
h2{font-size:16px;margin:24px 0 8px}
#view{border:1px solid var(--line);border-radius:6px;overflow:hidden;cursor:grab;touch-action:none}
#view.drag{cursor:grabbing}
#view svg{display:block;width:100%;height:auto}
.hint{color:var(--muted);font-size:12px;margin:6px 0}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:4px 10px;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}
th:first-child,td:first-child,th:nth-child(2),td:nth-child(2){text-align:left;white-space:normal;overflow-wrap:anywhere}
thead th{position:sticky;top:0;background:var(--soft);cursor:pointer}
tr.critical td:first-child{border-left:3px solid #b3261e}
pre{background:var(--soft);padding:12px;border-radius:6px;overflow:auto;
 font:12px/1.45 ui-monospace,Menlo,Consolas,monospace}
#tip{position:fixed;display:none;white-space:pre;background:var(--ink);color:var(--paper);padding:6px 10px;
 border-radius:4px;font-size:12px;pointer-events:none;max-width:60vw;z-index:9}
@media print{#view{border:none}.hint{display:none}thead th{position:static}}
</style>
)html";

// Zoom with the wheel about the pointer, pan by dragging, double click to reset; hovering shows a bar's
// <title>.
constexpr char kScript[] = R"html(<script>
(() => {
  const view = document.getElementById('view'), svg = view.querySelector('svg'), tip = document.getElementById('tip');
  const full = svg.viewBox.baseVal, home = [full.x, full.y, full.width, full.height];
  let box = home.slice(), drag = null;
  const apply = () => svg.setAttribute('viewBox', box.join(' '));
  const point = e => { const r = svg.getBoundingClientRect();
    return [box[0] + (e.clientX - r.left) / r.width * box[2], box[1] + (e.clientY - r.top) / r.height * box[3]]; };
  svg.setAttribute('preserveAspectRatio', 'none');
  view.addEventListener('wheel', e => { e.preventDefault(); const [x] = point(e);
    const w = Math.min(home[2], Math.max(home[2] / 500, box[2] * Math.exp(e.deltaY / 400)));
    box[0] = Math.max(home[0], Math.min(home[0] + home[2] - w, x - (x - box[0]) * w / box[2]));
    box[2] = w; apply(); }, {passive: false});
  view.addEventListener('pointerdown', e => {
    drag = [e.clientX, box[0]]; view.classList.add('drag'); view.setPointerCapture(e.pointerId); });
  view.addEventListener('pointermove', e => {
    if (drag) { const r = svg.getBoundingClientRect();
      box[0] = Math.max(home[0], Math.min(home[0] + home[2] - box[2],
        drag[1] - (e.clientX - drag[0]) / r.width * box[2])); apply(); }
    const g = document.elementFromPoint(e.clientX, e.clientY);
      const t = g && g.closest('g') && g.closest('g').querySelector('title');
    tip.style.display = t && !drag ? 'block' : 'none';
    if (t) { tip.textContent = t.textContent;
      tip.style.left = Math.min(e.clientX + 14, innerWidth - tip.offsetWidth - 8) + 'px';
      tip.style.top = Math.min(e.clientY + 14, innerHeight - tip.offsetHeight - 8) + 'px'; } });
  const up = () => { drag = null; view.classList.remove('drag'); };
  view.addEventListener('pointerup', up); view.addEventListener('pointerleave', () => { up();
    tip.style.display = 'none'; });
  view.addEventListener('dblclick', () => { box = home.slice(); apply(); });
  document.querySelectorAll('thead th').forEach((th, i) => th.addEventListener('click', () => {
    const body = document.querySelector('tbody'), sign = th.dataset.sign = th.dataset.sign === '1' ? -1 : 1;
    const key = r => r.children[i].dataset.v ?? r.children[i].textContent;
    [...body.rows].sort((a, b) => { const x = key(a), y = key(b), d = parseFloat(x) - parseFloat(y);
      return sign * (isNaN(d) ? x.localeCompare(y) : d); }).forEach(r => body.append(r)); }));
})();
</script>
)html";

std::string time_cell(double us) {
  char value[40];
  std::snprintf(value, sizeof value, "%.3f", us);
  return std::string("<td data-v=\"") + value + "\">" + format_us(us) + "</td>";
}

std::string html_row(const TimelineBar& bar, bool measured) {
  const double predicted = bar.predicted_finish_us - bar.predicted_start_us;
  std::string out = std::string("<tr") + (bar.critical ? " class=\"critical\"" : "") + "><td>" +
                    escape_markup(bar.name) + "</td><td>" + escape_markup(bar.track) + "</td>" +
                    time_cell(bar.predicted_start_us) + time_cell(predicted);
  if (measured) {
    const double m = bar.measured_median_us.value_or(0);
    char error[64];
    std::snprintf(error, sizeof error, "<td data-v=\"%.3f\">%+.1f %%</td>",
                  predicted > 0 ? 100 * (m - predicted) / predicted : 0,
                  predicted > 0 ? 100 * (m - predicted) / predicted : 0);
    out += time_cell(m) + error;
  }
  return out + "</tr>\n";
}

}  // namespace

std::string timeline_html(const TimelineView& view, const std::string& explanation_text) {
  const bool measured = view.measured_us.has_value();
  std::string out =
      std::string(kHead) + "<title>" + escape_markup(view.title) + "</title>\n" + kStyle + "</head><body>\n";
  out += "<div id=\"view\">" + timeline_svg(view) + "</div><div id=\"tip\"></div>\n";
  out +=
      "<p class=\"hint\">Scroll to zoom in time, drag to move, double-click to reset, hover for "
      "details.</p>\n";
  out += "<h2>Why</h2>\n<pre>" + escape_markup(explanation_text) + "</pre>\n";
  out +=
      "<h2>Steps</h2>\n<p class=\"hint\">Click a heading to sort. A red edge marks the critical "
      "path.</p>\n<table><thead><tr>"
      "<th>step</th><th>where</th><th>start</th><th>predicted</th>";
  if (measured) out += "<th>measured (median)</th><th>error</th>";
  out += "</tr></thead><tbody>\n";
  for (const auto& bar : view.bars) out += html_row(bar, measured);
  return out + "</tbody></table>\n" + kScript + "</body></html>\n";
}

}  // namespace heddle
