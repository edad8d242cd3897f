#include "heddle/report/page.h"

#include "markup.h"

namespace heddle {
namespace {

constexpr std::string_view kCommonStyle = R"css(
:root{color-scheme:light dark;--ink:#1f2933;--muted:#5a6a7a;--line:#d8dee5;--paper:#fff;--soft:#f4f6f8;
--run:#2f6fb5;--transfer:#e8a33d;--load:#2e7d4f;--good:#2e7d32;--bad:#b3261e;--bound:#7b3fb5}
@media(prefers-color-scheme:dark){:root{--ink:#e5e9ee;--muted:#9aa7b5;--line:#343e49;--paper:#14181d;--soft:#1c2229;
--run:#3575bd;--good:#7bc67f;--bad:#ff8a80;--bound:#bb8be8}}
*{box-sizing:border-box}
body{font:14px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif;color:var(--ink);background:var(--paper);
margin:0 auto;padding:16px 20px;max-width:1280px;overflow-wrap:anywhere}
h1{font-size:20px;line-height:1.3;margin:0}h2{font-size:16px;margin:28px 0 8px}h3{font-size:14px;margin:20px 0 6px}
p{margin:4px 0;max-width:80ch}.muted{color:var(--muted)}.bad{color:var(--bad)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:10px;margin:14px 0}
.tile{background:var(--soft);border-radius:8px;padding:10px 12px;display:flex;flex-direction:column}
.tile b{font-size:20px;line-height:1.3;font-variant-numeric:tabular-nums}
.tile span,.tile small{color:var(--muted);font-size:12px}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:4px 10px;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap;vertical-align:top}
th{color:var(--muted);font-weight:600}
th.text,td.text,th:first-child,td:first-child{text-align:left}
td.text,td:first-child{white-space:normal;min-width:9em}
button,select{font:inherit;color:inherit;background:var(--soft);border:1px solid var(--line);border-radius:6px;
padding:4px 12px;min-height:36px;cursor:pointer}
:focus-visible{outline:2px solid var(--run);outline-offset:2px}
@media(max-width:480px){body{padding:12px}.tiles{grid-template-columns:1fr 1fr;gap:8px}th,td{padding:4px 7px}}
)css";

}  // namespace

std::string page_head(std::string_view title, std::string_view style) {
  return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
         "content=\"width=device-width,initial-scale=1\">\n<title>" +
         escape_markup(title) + "</title>\n<style>" + std::string(kCommonStyle) + std::string(style) +
         "</style></head><body>\n";
}

std::string page_tile(std::string_view label, std::string_view value, std::string_view note) {
  return "<div class=\"tile\"><span>" + escape_markup(label) + "</span><b>" + escape_markup(value) +
         "</b><small>" + escape_markup(note) + "</small></div>\n";
}

}  // namespace heddle
