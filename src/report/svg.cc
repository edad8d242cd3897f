// Draws the timeline: devices as rows, predicted bars above measured ones, on a common time axis.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "heddle/base/gap.h"
#include "heddle/base/spelling.h"
#include "heddle/base/units.h"
#include "heddle/report/chart.h"
#include "heddle/report/text_table.h"
#include "heddle/report/timeline_view.h"
#include "markup.h"

namespace heddle {
namespace {

constexpr double kLeft = 190, kRightEdge = 24, kTop = 84, kBottom = 56;
constexpr double kWidth = 1200;
constexpr double kBarHeight = 20, kBarGap = 3, kTrackGap = 12;
// A bar narrower than this shows no text; a character takes about 6.2 px at this size.
constexpr double kLeastLabel = 24, kCharacter = 6.2;
constexpr double kLeastLabelHeight = 10;  // members of a stage share a bar's height

// Blue, amber and green can be told apart by colour-blind readers; critical steps have a dark outline.
constexpr char kSvgStyle[] =
    "<style>"
    "text{font:12px system-ui,-apple-system,'Segoe UI',sans-serif;fill:#1f2933}"
    ".bg{fill:#ffffff}.row{fill:#f4f6f8}.title{font-size:16px;font-weight:600}.muted{fill:#667788}"
    ".axis{stroke:#c3ccd5;stroke-width:1}.grid{stroke:#e3e8ed;stroke-width:1}"
    ".run{fill:#4a90d9}.transfer{fill:#e8a33d}.load{fill:#5fae6e}"
    ".measured{opacity:.55}.critical{stroke:#b3261e;stroke-width:2}"
    ".label{font-size:11px;fill:#ffffff;pointer-events:none}"
    ".bound{stroke:#7b3fb5;stroke-width:1.5;stroke-dasharray:5 4}"
    "@media "
    "(prefers-color-scheme:dark){text{fill:#e5e9ee}.bg{fill:#14181d}.row{fill:#1c2229}.muted{fill:#93a1b0}"
    ".axis{stroke:#4a5663}.grid{stroke:#2b333c}.critical{stroke:#ff8a80}}"
    "</style>\n";

constexpr int kTicks = 8;

struct Row {
  double y = 0;
  bool measured = false;  // true: a second row of bars below the predicted one
  double height() const { return (measured ? 2 * kBarHeight + kBarGap : kBarHeight) + kTrackGap; }
};

class Drawing {
 public:
  explicit Drawing(const TimelineView& view) : view_(view) {
    for (const auto& bar : view.bars) measured_ |= bar.measured_start_us.has_value();
    double y = kTop;
    for (const auto& track : view.tracks) {
      rows_[track] = {y, measured_};
      y += rows_[track].height();
    }
    height_ = y + kBottom;
    bottom_ = y;
    scale_ = (kWidth - kLeft - kRightEdge) / (view.span_us > 0 ? view.span_us : 1);
  }

  std::string run() {
    out_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.2f} {1:.2f}\" role=\"img\" "
        "aria-label=\"{2}\">\n"
        "{3}<rect class=\"bg\" width=\"{0:.2f}\" height=\"{1:.2f}\"/>\n",
        kWidth, height_, escape_markup(view_.title), kSvgStyle);
    header();
    axis();
    for (const auto& track : view_.tracks) draw_track(track);
    for (const auto& bar : view_.bars) draw_bar(bar);
    bound_line();
    legend();
    return out_ + "</svg>\n";
  }

 private:
  double x(double us) const { return kLeft + us * scale_; }

  void text(double tx, double ty, const std::string& content, const std::string& attributes = "") {
    out_ += fmt::format("<text x=\"{:.2f}\" y=\"{:.2f}\" {}>{}</text>\n", tx, ty, attributes,
                        escape_markup(content));
  }

  // A vertical line from the height `from` to the bottom; its end is left to the caller, for a title.
  void upright(const char* css, double us, double from) {
    out_ += fmt::format("<line class=\"{}\" x1=\"{:.2f}\" x2=\"{:.2f}\" y1=\"{:.2f}\" y2=\"{:.2f}\"", css,
                        x(us), x(us), from, bottom_);
  }

  std::string value(double us) const { return objective_text(view_.objective, view_.batch, us); }

  void header() {
    text(16, 28, view_.title, "class=\"title\"");
    std::string line =
        std::string(objective_name(view_.objective)) + " predicted " + value(view_.predicted_us);
    if (const auto measured = view_.measured_us) {
      const double error = view_.predicted_us > 0 ? (*measured - view_.predicted_us) / view_.predicted_us : 0;
      line += ", measured " + value(*measured) +
              (view_.objective == Objective::kThroughput ? " (time " : " (") + signed_percent(error) + ")";
    }
    line += (view_.bound.proof.proven() ? "; proven " : "; claimed ") + bound_text(value(view_.bound.us)) +
            ", gap " + percent(view_.gap);
    text(16, 50, line, "class=\"muted\"");
  }

  void axis() {
    for (const double t : round_ticks(0, view_.span_us, kTicks)) {
      upright("grid", t, kTop - 8);
      out_ += "/>\n";
      text(x(t), kTop - 12, t == 0 ? "0" : format_us(t), "text-anchor=\"middle\" class=\"muted\"");
    }
  }

  void draw_track(const std::string& track) {
    const auto& row = rows_[track];
    out_ +=
        fmt::format("<rect class=\"row\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\"/>\n",
                    kLeft, row.y - 3, kWidth - kLeft - kRightEdge, row.height() - kTrackGap + 6);
    constexpr size_t kFits = 27;
    text(16, row.y + kBarHeight - 6, cut_text(track, kFits));
    if (row.measured)
      text(kLeft - 8, row.y + 2 * kBarHeight + kBarGap - 6, "measured",
           "text-anchor=\"end\" class=\"muted\" font-size=\"10\"");
  }

  void rect(const TimelineBar& bar, double start, double finish, double y, bool measured) {
    const double w = std::max(0.6, (finish - start) * scale_);
    const double h = kBarHeight / bar.parts;
    y += bar.part * h;
    const char* also = measured ? " measured" : bar.critical ? " critical" : "";
    out_ += fmt::format(
        "<g><title>{}</title><rect class=\"{}{}\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" "
        "height=\"{:.2f}\" rx=\"2\"/>",
        escape_markup(hover_text(bar)), step_kind_name(bar.kind), also, x(start), y, w,
        bar.parts > 1 ? h - 1 : h);
    if (w > kLeastLabel && h >= kLeastLabelHeight) {
      const auto fits = static_cast<size_t>((w - 8) / kCharacter);
      const auto label = fits > 3 || characters(bar.name) <= fits ? cut_text(bar.name, fits, "..") : "";
      if (!label.empty()) {
        const bool whole = bar.parts == 1;
        text(x(start) + 4, y + h / 2 + (whole ? 4 : 3), label,
             whole ? "class=\"label\"" : "class=\"label\" style=\"font-size:8px\"");
      }
    }
    out_ += "</g>\n";
  }

  void draw_bar(const TimelineBar& bar) {
    const auto& row = rows_[bar.track];
    rect(bar, bar.predicted_start_us, bar.predicted_finish_us, row.y, false);
    if (bar.measured_start_us)
      rect(bar, *bar.measured_start_us, *bar.measured_finish_us, row.y + kBarHeight + kBarGap, true);
  }

  // Only a latency's bound is a point on the time axis.
  void bound_line() {
    if (view_.objective == Objective::kThroughput || view_.bound.us <= 0 || view_.bound.us > view_.span_us)
      return;
    upright("bound", view_.bound.us, kTop - 6);
    out_ += "><title>" + bound_title() + "</title></line>\n";
  }

  std::string bound_title() const {
    const Proof& proof = view_.bound.proof;
    return proof.proven() ? "proven lower bound" : "lower bound claimed by " + proof.claimed_by;
  }

  void legend() {
    double at = kLeft;
    const double y = bottom_ + 22;
    const auto entry = [&](const char* cls, const std::string& name) {
      out_ +=
          fmt::format("<rect class=\"{}\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"16\" height=\"12\" rx=\"2\"/>\n",
                      cls, at, y - 11);
      text(at + 22, y, name, "class=\"muted\"");
      at += 40 + kCharacter * static_cast<double>(name.size());
    };
    entry("run", "run");
    entry("transfer", "transfer");
    entry("load", "parameter load");
    entry("run critical", "on the critical path");
    if (measured_) entry("run measured", "measured (below)");
    if (view_.objective != Objective::kThroughput && view_.bound.us > 0) {
      out_ += fmt::format("<line class=\"bound\" x1=\"{:.2f}\" x2=\"{:.2f}\" y1=\"{:.2f}\" y2=\"{:.2f}\"/>\n",
                          at, at + 18, y - 5, y - 5);
      text(at + 24, y, bound_title(), "class=\"muted\"");
    }
  }

  const TimelineView& view_;
  std::map<std::string, Row> rows_;
  std::string out_;
  bool measured_ = false;
  double height_ = 0, bottom_ = 0, scale_ = 1;
};

}  // namespace

std::string hover_text(const TimelineBar& bar) {
  std::string text = bar.name + "\n" + bar.track + "\npredicted " + format_us(bar.predicted_start_us) +
                     " to " + format_us(bar.predicted_finish_us) + " (" +
                     format_us(bar.predicted_finish_us - bar.predicted_start_us) + ")";
  if (bar.measured_start_us) {
    text += "\nmeasured " + format_us(*bar.measured_start_us) + " to " + format_us(*bar.measured_finish_us) +
            " (median " + format_us(bar.measured_median_us.value_or(0)) + ")";
  }
  for (const auto& [key, value] : bar.details) text += "\n" + key + ": " + value;
  if (bar.critical) text += "\non the critical path";
  return text;
}

std::string timeline_svg(const TimelineView& view) { return Drawing(view).run(); }

}  // namespace heddle
