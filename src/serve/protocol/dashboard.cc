#include "dashboard.h"

namespace heddle {
namespace {

constexpr std::string_view kPage = R"html(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>Heddle</title><style>
:root{color-scheme:light dark;--ink:#1f2933;--muted:#667788;--line:#d8dee5;--paper:#fff;--soft:#f4f6f8;
 --work:#2f7ed8;--bad:#b3261e;--good:#2e7d32}
@media(prefers-color-scheme:dark){:root{--ink:#e5e9ee;--muted:#93a1b0;--line:#343e49;--paper:#14181d;--soft:#1c2229}}
body{font:14px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif;color:var(--ink);background:var(--paper);
 margin:0;padding:16px 20px;max-width:1240px}
h1{font-size:19px;margin:0}h2{font-size:16px;margin:24px 0 8px}.muted{color:var(--muted)}.bad{color:var(--bad)}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:3px 10px;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th:first-child,td:first-child{text-align:left;white-space:normal;overflow-wrap:anywhere}
.chain{display:flex;flex-wrap:wrap;align-items:center;gap:6px;margin:6px 0}
.pool{background:var(--soft);border:1px solid var(--line);border-radius:6px;padding:6px 10px;min-width:150px}
.bar{height:6px;background:var(--line);border-radius:3px;overflow:hidden;margin-top:4px}
.bar i{display:block;height:100%;background:var(--work)}
svg{width:100%;height:60px;background:var(--soft);border-radius:6px;display:block}
polyline{fill:none;stroke:var(--work);stroke-width:1.5;vector-effect:non-scaling-stroke}
</style></head><body>
<h1>Heddle <span id="state" class="muted">asking the server</span></h1>
<p id="what" class="muted"></p>
<h2>Requests answered per second, last two minutes</h2>
<svg id="course" viewBox="0 0 120 60" preserveAspectRatio="none" role="img"
 aria-label="requests answered per second"><polyline points=""/></svg>
<h2>Models</h2><table id="models"><thead><tr><th>model</th><th>SLO</th><th>planned</th><th>answered</th>
<th>in time</th><th>dropped</th><th>failed</th><th>waiting</th><th>p50</th><th>p99</th></tr></thead>
<tbody></tbody></table>
<h2>Plan: pipelines of pools, and their use now</h2><div id="plan"></div>
<h2>Classes of devices</h2><table id="classes"><thead><tr><th>class</th><th>in the fleet</th><th>used</th></tr></thead>
<tbody></tbody></table>
<h2>Changes of the plan, the last first</h2><table id="changes"><thead><tr><th>when and why</th></tr></thead>
<tbody></tbody></table>
<script>
'use strict';
const $ = id => document.getElementById(id);
const ms = us => us >= 1e6 ? (us / 1e6).toPrecision(3) + ' s' : us >= 1e3 ? (us / 1e3).toPrecision(3) + ' ms'
  : Math.round(us) + ' us';
let before = null, token = '';
const rates = [];
// Text only ever enters as text: names come from files.
function cells(row, texts) {
  for (const text of texts) row.appendChild(document.createElement('td')).textContent = text;
  return row;
}
function fill(table, rows) {
  const body = $(table).tBodies[0];
  body.replaceChildren(...rows.map(texts => cells(document.createElement('tr'), texts)));
}
const sum = o => Object.entries(o).reduce((n, [k, v]) => k === 'invalid' ? n : n + v, 0);
function draw(s, now) {
  $('state').textContent = s.state;
  $('state').className = s.state === 'serving' ? 'muted' : 'bad';
  $('what').textContent = s.fleet ? `${s.fleet}, plan by ${s.planner}, up ${Math.round(s.uptime_s)} s, ` +
    `${s.plans} plan${s.plans === 1 ? '' : 's'} so far, decision p99 ${ms(s.decision.p99_us)}` : 'no model is loaded';
  fill('models', s.models.map(m => {
    const all = sum(m.requests), answered = m.requests.in_time + m.requests.late;
    return [m.name, ms(m.slo_us), m.rate_per_s.toFixed(1) + '/s', answered,
      all ? (100 * m.requests.in_time / all).toFixed(1) + ' %' : '', m.requests.dropped,
      m.requests.failed + m.requests.withdrawn, m.queued, ms(m.latency.p50_us), ms(m.latency.p99_us)];
  }));
  fill('changes', (s.changes || []).slice(-20).reverse().map(c => [`${c.at} ${c.what}: ${c.text}`]));
  fill('classes', s.classes.map(c => [c.name, c.devices, c.used]));
  const seconds = before ? (now - before.at) / 1000 : 0;
  const chains = new Map();
  s.pools.forEach((p, i) => {
    const old = before && before.pools[i];
    const same = old && old.model === p.model && old.busy_s <= p.busy_s && before.plans === s.plans;
    const use = same && seconds > 0 ? Math.min(1, (p.busy_s - old.busy_s) / seconds / p.devices) : 0;
    const pool = document.createElement('div');
    pool.className = 'pool';
    pool.textContent = `${p.devices} x ${p.class}${p.share > 1 ? '/' + p.share : ''}`;
    const detail = pool.appendChild(document.createElement('div'));
    detail.className = 'muted';
    const off = p.predicted_s > 0 ? `, ${(100 * (p.busy_s / p.predicted_s - 1)).toFixed(1)} % off plan` : '';
    const percent = (100 * use).toFixed(0);
    detail.textContent = `blocks ${p.blocks[0]}..${p.blocks[1] - 1}, batch ${p.batch}, ${percent} %${off}`;
    const bar = pool.appendChild(document.createElement('div'));
    bar.className = 'bar';
    bar.appendChild(document.createElement('i')).style.width = 100 * use + '%';
    const key = p.pipeline;
    if (!chains.has(key)) {
      const chain = document.createElement('div');
      chain.className = 'chain';
      const name = chain.appendChild(document.createElement('div'));
      name.textContent = `${p.model} \u2192`;
      chains.set(key, chain);
    } else {
      chains.get(key).appendChild(document.createElement('span')).textContent = '\u2192';
    }
    chains.get(key).appendChild(pool);
  });
  $('plan').replaceChildren(...chains.values());
  const done = s.models.reduce((n, m) => n + m.requests.in_time + m.requests.late, 0);
  if (before && seconds > 0 && done >= before.done) rates.push((done - before.done) / seconds);
  if (rates.length > 120) rates.shift();
  const top = Math.max(1, ...rates);
  $('course').querySelector('polyline').setAttribute('points',
    rates.map((r, i) => `${i + 120 - rates.length},${58 - 54 * r / top}`).join(' '));
  before = {at: now, pools: s.pools, plans: s.plans, done};
}
async function ask() {
  try {
    const answer = await fetch('v2/status', {headers: token ? {Authorization: 'Bearer ' + token} : {}});
    if (answer.status === 401) {
      token = prompt('This server wants a token') || '';
      if (!token) throw new Error('the server wants a token');
    } else {
      draw(await answer.json(), performance.now());
    }
  } catch (error) {
    $('state').textContent = 'no answer: ' + error.message;
    $('state').className = 'bad';
  }
  setTimeout(ask, 1000);
}
ask();
</script></body></html>
)html";

}  // namespace

std::string_view dashboard_page() { return kPage; }

}  // namespace heddle
