// One page with the plan's figures, its timeline, why it is so, and each step's predicted and measured time. It needs
// no network.
#include <fmt/format.h>

#include <algorithm>

#include "heddle/base/spelling.h"
#include "heddle/base/units.h"
#include "heddle/report/page.h"
#include "heddle/report/text_table.h"
#include "heddle/report/timeline_view.h"
#include "markup.h"
#include "why_html.h"

namespace heddle {
namespace {

constexpr int kBarPixels = 20, kGapPixels = 3;

// Bars are placed in percent of the lane, so zooming widens the lane and leaves texts as they are. Predicted bars are
// filled, measured ones outlined.
constexpr char kTimelineStyle[] = R"css(
:root{--names:170px;--end:44px}
.tools{display:flex;flex-wrap:wrap;gap:8px;align-items:center;margin:20px 0 8px}
.tools button{min-width:40px}
.key{display:flex;flex-wrap:wrap;gap:4px 14px;font-size:12px;color:var(--muted);margin:6px 0}
.key i{display:inline-block;width:16px;height:12px;border-radius:2px;margin-right:5px;vertical-align:-1px}
#view{overflow-x:auto;border:1px solid var(--line);border-radius:8px;cursor:grab;position:relative}
#view.drag{cursor:grabbing;user-select:none}
#inner{position:relative;min-width:calc(100% * var(--zoom,1));padding:6px 0}
.track{display:flex;border-bottom:1px solid var(--line);padding:5px 0}
.track:last-child{border-bottom:0}
.name{position:sticky;left:0;z-index:3;flex:0 0 var(--names);width:var(--names);padding:0 10px;font-size:12px;
background:var(--paper);line-height:20px;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.name small{display:block;line-height:23px;text-align:right;color:var(--muted);font-size:11px}
.lane,.over{margin-right:var(--end)}
.lane{position:relative;flex:1 1 auto}
#ticks{height:20px}
#ticks span{position:absolute;transform:translateX(-50%);font-size:11px;color:var(--muted);white-space:nowrap}
#ticks span:first-child{transform:none}
.over{position:absolute;top:0;bottom:0;left:var(--names);right:0;pointer-events:none}
.over i{position:absolute;top:26px;bottom:0;border-left:1px solid var(--line)}
.over i.bound{border-left:2px dashed var(--bound);z-index:2}
.bar{position:absolute;min-width:1.5px;border-radius:3px;overflow:clip;white-space:nowrap;color:#fff;z-index:1;
box-shadow:inset -1px 0 0 var(--paper);container-type:inline-size}
@container(max-width:26px){.bar span{visibility:hidden}}
.bar span{position:sticky;left:calc(var(--names) + 2px);display:inline-block;max-width:100%;overflow:clip;
text-overflow:ellipsis;text-indent:4px}
.run{background:var(--run)}.transfer{background:var(--transfer);color:#1f2933}.load{background:var(--load)}
.measured{color:var(--ink);background:var(--soft);border:1.5px solid var(--run)}
.measured.transfer{border-color:var(--transfer)}.measured.load{border-color:var(--load)}
.critical{box-shadow:inset -1px 0 0 var(--paper),inset 0 -4px 0 var(--bad)}
.bar.sel{outline:3px solid var(--ink);z-index:2}
.measured{box-shadow:none}
#tip{position:fixed;display:none;white-space:pre-wrap;background:var(--ink);color:var(--paper);padding:6px 10px;
border-radius:6px;font-size:12px;pointer-events:none;max-width:min(420px,calc(100vw - 16px));z-index:9}
.share{display:flex;height:14px;border-radius:4px;overflow:hidden;background:var(--line);margin:6px 0;max-width:640px}
.busy{display:inline-block;width:70px;height:8px;border-radius:4px;background:var(--line);margin-right:8px;
overflow:hidden}
.busy i{display:block;height:100%;background:var(--run)}
.note{border-left:4px solid var(--transfer);background:var(--soft);border-radius:4px;padding:8px 12px;margin:10px 0}
#steps{max-height:75vh;overflow:auto}
#steps thead th{position:sticky;top:0;background:var(--paper);padding:0}
#steps thead button{border:0;background:none;font-weight:600;color:var(--muted);width:100%;text-align:inherit;
white-space:nowrap;padding:4px 10px}
tr.critical{box-shadow:none}tr.critical td:first-child{box-shadow:inset 3px 0 0 var(--bad)}
@media(max-width:640px){.busy{width:36px}
:root{--names:0px;--end:30px}.track{display:block}.track.axis .name{display:none}
.name{width:fit-content;max-width:calc(100vw - 60px)}.name small{display:none}.lane{margin-left:10px}.over{left:10px}}
@media print{.tools{display:none}#view,#steps{overflow:visible;max-height:none}body{max-width:none}}
)css";

constexpr char kTimelineScript[] = R"html(<script>
'use strict';
(() => {
  const $ = id => document.getElementById(id), view = $('view'), inner = $('inner'), tip = $('tip');
  const span = Number(view.dataset.span), most = 1000;
  let zoom = 1, selected = null;
  const lane = () => $('ticks').getBoundingClientRect();
  const round = v => { const p = 10 ** Math.floor(Math.log10(v)); return p * [1, 2, 5, 10].find(m => m * p >= v); };
  // Ticks some 90 pixels apart, in one unit.
  function ticks() {
    const width = lane().width;
    if (!(span > 0 && width > 0)) return;
    const step = round(span * 90 / width);
    const [unit, name] = span >= 1e6 ? [1e6, 's'] : span >= 1e3 ? [1e3, 'ms'] : [1, 'us'];
    const digits = Math.max(0, -Math.floor(Math.log10(step / unit) + 1e-9));
    const labels = [], lines = [];
    // Only what is near the part that can be seen.
    const from = Math.max(0, Math.floor((view.scrollLeft - 400) / width * span / step));
    const to = Math.min(span * 1.0001 / step, (view.scrollLeft + view.clientWidth + 400) / width * span / step);
    for (let i = from; i <= to; ++i) {
      const label = document.createElement('span'), line = document.createElement('i');
      label.textContent = i ? (i * step / unit).toFixed(digits) + ' ' + name : '0';
      label.style.left = line.style.left = 100 * i * step / span + '%';
      if (i) label.style.transform = 'translateX(-50%)';
      labels.push(label);
      lines.push(line);
    }
    $('ticks').replaceChildren(...labels);
    $('grid').replaceChildren(...lines);
  }
  // Zooms about a place of the view, in pixels from its left edge.
  function zoom_to(value, at = view.clientWidth / 2) {
    const left = () => lane().left - inner.getBoundingClientRect().left;
    const share = (view.scrollLeft + at - left()) / lane().width;
    zoom = Math.min(most, Math.max(1, value));
    inner.style.setProperty('--zoom', zoom);
    view.scrollLeft = left() + share * lane().width - at;
    ticks();
  }
  function show(bar, x, y) {
    tip.style.display = bar ? 'block' : 'none';
    if (!bar) return;
    tip.textContent = bar.dataset.tip;
    tip.style.left = Math.max(8, Math.min(x + 14, innerWidth - tip.offsetWidth - 8)) + 'px';
    tip.style.top = Math.max(8, Math.min(y + 14, innerHeight - tip.offsetHeight - 8)) + 'px';
  }
  function select(bar) {
    if (selected) selected.classList.remove('sel');
    selected = bar;
    if (!bar) return show(null);
    bar.classList.add('sel');
    bar.scrollIntoView({block: 'nearest', inline: 'nearest'});
    const names = lane().left - inner.getBoundingClientRect().left;
    const hidden = view.getBoundingClientRect().left + names + 8 - bar.getBoundingClientRect().left;
    if (hidden > 0) view.scrollLeft -= hidden;
    show_selected();
  }
  function show_selected() {
    const r = selected && selected.getBoundingClientRect();
    show(selected, r && r.left, r && r.bottom);
  }
  const bars = [...view.querySelectorAll('.bar')], rows = [];
  for (const track of view.querySelectorAll('.track')) {
    for (const list of [track.querySelectorAll('.bar:not(.measured)'), track.querySelectorAll('.bar.measured')])
      if (list.length) rows.push([...list]);
  }
  function move(by, row_by) {
    const r = rows.findIndex(row => row.includes(selected));
    if (r < 0) return select(rows.length ? rows[0][0] : null);
    if (by) return select(rows[r][rows[r].indexOf(selected) + by] || selected);
    const row = rows[r + row_by], at = parseFloat(selected.style.left);
    if (row) select(row.reduce((a, b) =>
      Math.abs(parseFloat(b.style.left) - at) < Math.abs(parseFloat(a.style.left) - at) ? b : a));
  }
  const keys = {ArrowRight: () => move(1, 0), ArrowLeft: () => move(-1, 0), ArrowDown: () => move(0, 1),
    ArrowUp: () => move(0, -1), '+': () => zoom_to(zoom * 1.5), '=': () => zoom_to(zoom * 1.5),
    '-': () => zoom_to(zoom / 1.5), '0': () => zoom_to(1), Escape: () => select(null)};
  view.addEventListener('keydown', e => {
    if (e.ctrlKey || e.metaKey || e.altKey || !keys[e.key]) return;
    e.preventDefault();
    keys[e.key]();
  });
  $('in').addEventListener('click', () => zoom_to(zoom * 1.5));
  $('out').addEventListener('click', () => zoom_to(zoom / 1.5));
  $('fit').addEventListener('click', () => zoom_to(1));
  view.addEventListener('wheel', e => {
    if (!e.ctrlKey) return;
    e.preventDefault();
    zoom_to(zoom * Math.exp(-e.deltaY / 200), e.clientX - view.getBoundingClientRect().left);
  }, {passive: false});
  let drag = null;
  view.addEventListener('pointerdown', e => {
    if (e.pointerType === 'mouse' && e.button === 0) drag = {x: e.clientX, from: view.scrollLeft, moved: false};
  });
  view.addEventListener('pointermove', e => {
    if (drag) {
      drag.moved = drag.moved || Math.abs(e.clientX - drag.x) > 4;
      if (drag.moved) view.classList.add('drag');
      view.scrollLeft = drag.from - (e.clientX - drag.x);
    }
    if (e.pointerType === 'mouse') show(drag ? null : e.target.closest('.bar'), e.clientX, e.clientY);
  });
  addEventListener('pointerup', () => { view.classList.remove('drag'); setTimeout(() => { drag = null; }); });
  view.addEventListener('pointerleave', () => show(null));
  view.addEventListener('click', e => { if (!drag || !drag.moved) select(e.target.closest('.bar')); });
  addEventListener('scroll', show_selected, {passive: true});
  view.addEventListener('scroll', () => { show_selected(); ticks(); }, {passive: true});
  addEventListener('resize', ticks);
  document.querySelectorAll('#steps thead button').forEach((button, i) => button.addEventListener('click', () => {
    const body = document.querySelector('#steps tbody');
    const sign = button.dataset.sign = button.dataset.sign === '1' ? -1 : 1;
    const key = r => r.children[i].dataset.v ?? r.children[i].textContent;
    [...body.rows].sort((a, b) => { const x = key(a), y = key(b), d = parseFloat(x) - parseFloat(y);
      return sign * (isNaN(d) ? x.localeCompare(y) : d); }).forEach(r => body.append(r));
  }));
  ticks();
})();
</script>
)html";

class TimelinePage {
 public:
  TimelinePage(const TimelineView& view, const Explanation& explanation) : view_(view), e_(explanation) {
    for (const auto& bar : view.bars) measured_ |= bar.measured_start_us.has_value();
  }

  std::string run() {
    out_ = page_head(view_.title, kTimelineStyle);
    heading();
    tiles();
    chart();
    out_ += why_html(e_, view_.precision);
    steps();
    return out_ + kTimelineScript + "</body></html>\n";
  }

 private:
  std::string value(double us) const { return objective_text(e_.objective, e_.batch, us); }

  void heading() {
    out_ +=
        "<h1>" + escape_markup(view_.model) + "</h1>\n<p class=\"muted\">" +
        escape_markup(fmt::format("on {}, planned by {} for {}: {} on {} of {}", view_.cluster, view_.planner,
                                  objective_name(view_.objective), counted(view_.bars.size(), "step"),
                                  view_.used_devices, counted(view_.devices, "device"))) +
        "</p>\n";
  }

  void tiles() {
    out_ += "<div class=\"tiles\">\n";
    out_ += page_tile(
        "predicted", value(view_.predicted_us),
        objective_name(view_.objective) + (e_.batch > 1 ? fmt::format(", batch {}", e_.batch) : ""));
    if (view_.measured_us) {
      out_ += page_tile("measured", value(*view_.measured_us),
                        "median of " + counted(static_cast<uint64_t>(view_.repeats), "run"));
      if (view_.predicted_us > 0)
        out_ += page_tile("prediction error", signed_percent(*view_.measured_us / view_.predicted_us - 1),
                          "measured time against predicted time");
    }
    if (view_.bound.us > 0) {
      const Proof& proof = view_.bound.proof;
      out_ += page_tile(proof.proven() ? "proven bound" : "claimed bound", value(view_.bound.us),
                        (proof.proven() ? "" : "by " + proof.claimed_by + ": ") + proof.reason);
      out_ += page_tile("gap", percent(view_.gap),
                        std::string("at most so far from the best plan") + (proof.proven() ? "" : ", if so"));
    }
    if (e_.single && view_.predicted_us > 0)
      out_ += page_tile("gain", fmt::format("{:.2f} times", e_.single->value_us / view_.predicted_us),
                        "the best single device is " + e_.single->device + ": " + value(e_.single->value_us));
    out_ += "</div>\n";
  }

  void key(const char* css, const std::string& name) {
    out_ += std::string("<span><i class=\"") + css + "\"></i>" + escape_markup(name) + "</span>\n";
  }

  bool has_bound_line() const {  // only a latency's bound is a point on the time axis
    return view_.objective != Objective::kThroughput && view_.bound.us > 0 && view_.bound.us <= view_.span_us;
  }

  void chart() {
    out_ +=
        "<div class=\"tools\"><h2 style=\"margin:0\">Timeline</h2><button id=\"in\" aria-label=\"Zoom "
        "in\">+</button><button id=\"out\" aria-label=\"Zoom out\">\u2212</button><button "
        "id=\"fit\">Fit</button></div>\n"
        "<div class=\"key\">\n";
    key("run", "run");
    const auto has = [this](StepKind kind) {
      return std::ranges::any_of(view_.bars, [kind](const TimelineBar& bar) { return bar.kind == kind; });
    };
    if (has(StepKind::kTransfer)) key("transfer", "transfer");
    if (has(StepKind::kLoad)) key("load", "parameter load");
    key("run critical", "on the critical path");
    if (measured_) key("measured", "measured, below its prediction");
    if (has_bound_line())
      out_ += "<span><i style=\"width:0;border-left:2px dashed var(--bound)\"></i>" +
              std::string(view_.bound.proof.proven() ? "proven" : "claimed") + " bound</span>\n";
    out_ += fmt::format(
        "</div>\n<div id=\"view\" tabindex=\"0\" role=\"group\" aria-label=\"Timeline: arrow keys choose a "
        "step, plus "
        "and minus zoom; the table below has the same steps\" data-span=\"{:.4f}\"><div id=\"inner\">\n<div "
        "class=\"over\" id=\"grid\"></div>\n",
        view_.span_us);
    if (has_bound_line())
      out_ +=
          "<div class=\"over\" style=\"z-index:2\"><i class=\"bound\" style=\"left:" + share(view_.bound.us) +
          "\"></i></div>\n";
    out_ +=
        "<div class=\"track axis\"><div class=\"name\"></div><div class=\"lane\" id=\"ticks\"></div></div>\n";
    size_t next = 0;  // bars are in the order of tracks
    for (const auto& track : view_.tracks) next = draw_track(track, next);
    out_ +=
        "</div></div><div id=\"tip\" role=\"status\"></div>\n<p class=\"muted\">Tap or click a step for its "
        "details. "
        "Zoom with the buttons, Ctrl and the wheel, or + and \u2212; move by dragging; arrow keys choose a "
        "step.</p>\n";
  }

  size_t draw_track(const std::string& track, size_t next) {
    out_ += "<div class=\"track\"><div class=\"name\" title=\"" + escape_markup(track) + "\">" +
            escape_markup(track) + (measured_ ? "<small>measured</small>" : "") +
            fmt::format("</div><div class=\"lane\" style=\"height:{}px\">\n",
                        measured_ ? 2 * kBarPixels + kGapPixels : kBarPixels);
    for (; next < view_.bars.size() && view_.bars[next].track == track; ++next) {
      const TimelineBar& bar = view_.bars[next];
      draw_bar(bar, bar.predicted_start_us, bar.predicted_finish_us, 0, bar.critical ? " critical" : "");
      if (bar.measured_start_us)
        draw_bar(bar, *bar.measured_start_us, *bar.measured_finish_us, kBarPixels + kGapPixels, " measured");
    }
    out_ += "</div></div>\n";
    return next;
  }

  std::string share(double us) const {
    return fmt::format("{:.5f}%", view_.span_us > 0 ? 100 * us / view_.span_us : 0);
  }

  void draw_bar(const TimelineBar& bar, double start, double finish, int top, const char* css) {
    constexpr double kLeastText = 9;  // members of a stage share a bar's height
    const double height = static_cast<double>(kBarPixels) / bar.parts;
    out_ += fmt::format(
        "<div class=\"bar {}{}\" style=\"left:{};width:{};top:{:.1f}px;height:{:.1f}px;font-size:{:.1f}px;"
        "line-height:{:.1f}px\" data-tip=\"{}\">{}</div>\n",
        step_kind_name(bar.kind), css, share(start), share(finish - start), top + bar.part * height,
        bar.parts > 1 ? height - 1 : height, std::min(11.0, .8 * height),
        height - (*css == ' ' && css[1] == 'm' ? 3 : 0), escape_markup(hover_text(bar)),
        height >= kLeastText ? "<span>" + escape_markup(bar.name) + "</span>" : "");
  }

  static std::string time_cell(double us) {
    return fmt::format("<td data-v=\"{:.3f}\">{}</td>", us, format_us(us));
  }

  void steps() {
    out_ +=
        "<h2>Steps</h2>\n<p class=\"muted\">Choose a heading to sort by it. A red edge marks the critical "
        "path.</p>\n<div id=\"steps\"><table><thead><tr>";
    std::vector<std::string> titles = {"step", "where", "start", "predicted"};
    if (measured_) titles.insert(titles.end(), {"measured (median)", "error"});
    for (const auto& title : titles)
      out_ += (&title - titles.data() < 2 ? "<th class=\"text\">" : "<th>") + ("<button>" + title) +
              "</button></th>";
    out_ += "</tr></thead><tbody>\n";
    for (const auto& bar : view_.bars) {
      const double predicted = bar.predicted_finish_us - bar.predicted_start_us;
      out_ += std::string(bar.critical ? "<tr class=\"critical\">" : "<tr>") + "<td class=\"text\">" +
              escape_markup(bar.name) + "</td><td class=\"text\">" + escape_markup(bar.track) + "</td>" +
              time_cell(bar.predicted_start_us) + time_cell(predicted);
      if (measured_) {
        const double m = bar.measured_median_us.value_or(0);
        const double error = predicted > 0 ? m / predicted - 1 : 0;
        out_ += time_cell(m) + fmt::format("<td data-v=\"{:.5f}\">{}</td>", error, signed_percent(error));
      }
      out_ += "</tr>\n";
    }
    out_ += "</tbody></table></div>\n";
  }

  const TimelineView& view_;
  const Explanation& e_;
  std::string out_;
  bool measured_ = false;
};

}  // namespace

std::string timeline_html(const TimelineView& view, const Explanation& explanation) {
  return TimelinePage(view, explanation).run();
}

}  // namespace heddle
