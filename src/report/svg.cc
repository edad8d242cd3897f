// Draws the timeline: devices as rows, predicted bars above measured ones, on a common time axis.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "heddle/base/gap.h"
#include "heddle/base/units.h"
#include "heddle/report/timeline_view.h"
#include "markup.h"

namespace heddle {
namespace {

constexpr double kLeft = 190, kRight = 24, kTop = 84, kBottom = 56;
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

std::string number(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", v);
  return text;
}

// A round step (1, 2 or 5 times a power of ten) that gives some eight ticks.
double tick_step(double span) {
  if (span <= 0) return 1;
  const double raw = span / 8;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double m : {1.0, 2.0, 5.0}) {
    if (m * power >= raw) return m * power;
  }
  return 10 * power;
}

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
    scale_ = (kWidth - kLeft - kRight) / (view.span_us > 0 ? view.span_us : 1);
  }

  std::string run() {
    out_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + number(kWidth) + " " +
           number(height_) + "\" role=\"img\" aria-label=\"" + escape_markup(view_.title) + "\">\n" +
           kSvgStyle;
    out_ += "<rect class=\"bg\" width=\"" + number(kWidth) + "\" height=\"" + number(height_) + "\"/>\n";
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
    out_ += "<text x=\"" + number(tx) + "\" y=\"" + number(ty) + "\" " + attributes + ">" +
            escape_markup(content) + "</text>\n";
  }

  void header() {
    text(16, 28, view_.title, "class=\"title\"");
    std::string line = view_.objective + " predicted " + format_us(view_.predicted_us);
    if (view_.measured_us) {
      char error[32];
      std::snprintf(
          error, sizeof error, " (%+.1f %%)",
          view_.predicted_us > 0 ? 100 * (*view_.measured_us - view_.predicted_us) / view_.predicted_us : 0);
      line += ", measured " + format_us(*view_.measured_us) + error;
    }
    char gap[48];
    std::snprintf(gap, sizeof gap, ", gap %.1f %%", 100 * view_.gap);
    line += (view_.bound.proof.proven() ? "; proven " : "; claimed ") +
            bound_text(format_us(view_.bound.us)) + gap;
    text(16, 50, line, "class=\"muted\"");
  }

  void axis() {
    const double step = tick_step(view_.span_us);
    for (double t = 0; t <= view_.span_us * 1.0001 && step > 0; t += step) {
      out_ += "<line class=\"grid\" x1=\"" + number(x(t)) + "\" x2=\"" + number(x(t)) + "\" y1=\"" +
              number(kTop - 8) + "\" y2=\"" + number(bottom_) + "\"/>\n";
      text(x(t), kTop - 12, t == 0 ? "0" : format_us(t), "text-anchor=\"middle\" class=\"muted\"");
    }
  }

  void draw_track(const std::string& track) {
    const auto& row = rows_[track];
    out_ += "<rect class=\"row\" x=\"" + number(kLeft) + "\" y=\"" + number(row.y - 3) + "\" width=\"" +
            number(kWidth - kLeft - kRight) + "\" height=\"" + number(row.height() - kTrackGap + 6) +
            "\"/>\n";
    constexpr size_t kFits = 27;
    const auto name = track.size() > kFits ? track.substr(0, kFits - 3) + "..." : track;
    text(16, row.y + kBarHeight - 6, name);
    if (row.measured)
      text(kLeft - 8, row.y + 2 * kBarHeight + kBarGap - 6, "measured",
           "text-anchor=\"end\" class=\"muted\" font-size=\"10\"");
  }

  void rect(const TimelineBar& bar, double start, double finish, double y, bool measured) {
    const double w = std::max(0.6, (finish - start) * scale_);
    const double h = kBarHeight / bar.parts;
    y += bar.part * h;
    out_ += std::string("<g><title>") + escape_markup(hover_text(bar)) + "</title><rect class=\"" +
            step_kind_name(bar.kind) + (measured ? " measured" : "") +
            (bar.critical && !measured ? " critical" : "") + "\" x=\"" + number(x(start)) + "\" y=\"" +
            number(y) + "\" width=\"" + number(w) + "\" height=\"" + number(bar.parts > 1 ? h - 1 : h) +
            "\" rx=\"2\"/>";
    if (w > kLeastLabel && h >= kLeastLabelHeight) {
      const auto fits = static_cast<size_t>((w - 8) / kCharacter);
      const auto label =
          bar.name.size() > fits ? (fits > 3 ? bar.name.substr(0, fits - 2) + ".." : "") : bar.name;
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
    if (view_.objective == "throughput" || view_.bound.us <= 0 || view_.bound.us > view_.span_us) return;
    out_ += "<line class=\"bound\" x1=\"" + number(x(view_.bound.us)) + "\" x2=\"" +
            number(x(view_.bound.us)) + "\" y1=\"" + number(kTop - 6) + "\" y2=\"" + number(bottom_) +
            "\"><title>" + bound_title() + "</title></line>\n";
  }

  std::string bound_title() const {
    const Proof& proof = view_.bound.proof;
    return proof.proven() ? "proven lower bound" : "lower bound claimed by " + proof.claimed_by;
  }

  void legend() {
    double at = kLeft;
    const double y = bottom_ + 22;
    const auto entry = [&](const char* cls, const std::string& name) {
      out_ += std::string("<rect class=\"") + cls + "\" x=\"" + number(at) + "\" y=\"" + number(y - 11) +
              "\" width=\"16\" height=\"12\" rx=\"2\"/>\n";
      text(at + 22, y, name, "class=\"muted\"");
      at += 40 + kCharacter * static_cast<double>(name.size());
    };
    entry("run", "run");
    entry("transfer", "transfer");
    entry("load", "parameter load");
    entry("run critical", "on the critical path");
    if (measured_) entry("run measured", "measured (below)");
    if (view_.objective != "throughput" && view_.bound.us > 0) {
      out_ += "<line class=\"bound\" x1=\"" + number(at) + "\" x2=\"" + number(at + 18) + "\" y1=\"" +
              number(y - 5) + "\" y2=\"" + number(y - 5) + "\"/>\n";
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
