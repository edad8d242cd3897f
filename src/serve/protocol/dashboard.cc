#include "dashboard.h"

#include <string>

#include "heddle/report/page.h"

namespace heddle {
namespace {

constexpr std::string_view kDashboardStyle = R"css(
header{display:flex;flex-wrap:wrap;gap:4px 14px;align-items:baseline}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,360px),1fr));gap:14px}
figure{margin:0;background:var(--soft);border-radius:8px;padding:10px 12px;min-width:0}
figcaption{display:flex;flex-wrap:wrap;gap:2px 14px;font-size:12px;min-height:40px;align-content:start}
figcaption b{flex:1 0 100%;font-size:13px}
figcaption i{display:inline-block;width:14px;height:0;border-top:2px solid;margin-right:5px;vertical-align:3px}
figure svg{display:block;width:100%;height:180px;touch-action:pan-y}
svg text{font:11px system-ui,-apple-system,'Segoe UI',sans-serif;fill:var(--muted)}
svg .grid{stroke:var(--line);stroke-width:1}svg .level{stroke:var(--bound);stroke-dasharray:5 4;stroke-width:1.5}
svg path{fill:none;stroke-width:2;stroke-linejoin:round}
.a{stroke:var(--run);border-color:var(--run)!important}.b{stroke:#d07a00;border-color:#d07a00!important}
.c{border-color:var(--bound)!important;border-top-style:dashed!important}
#plan{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,560px),1fr));gap:0 14px}
.chain{display:flex;flex-wrap:wrap;align-items:center;align-content:start;gap:8px;margin:8px 0}
.chain>b{flex:1 0 100%}
.pool{background:var(--soft);border-radius:8px;padding:8px 12px;flex:0 1 250px;min-width:0}
.pool div{font-size:12px}
.bar{height:8px;background:var(--line);border-radius:4px;overflow:hidden;margin-top:4px}
.bar i{display:block;height:100%;background:var(--run)}
.class{display:grid;grid-template-columns:minmax(90px,160px) 1fr;gap:4px 14px;align-items:start;margin:10px 0}
.squares{display:flex;flex-wrap:wrap;gap:3px}
.squares i,.key i{width:14px;height:14px;border-radius:3px;border:1.5px solid var(--run);flex:none;position:relative}
.squares.many{gap:0}.squares.many i{width:auto;border-radius:0}
.key{display:flex;flex-wrap:wrap;gap:4px 14px;font-size:12px;color:var(--muted)}
.key i{display:inline-block;vertical-align:-2px;margin-right:5px}
i.busy{background:var(--run)}i.lost{border-color:var(--bad)!important;background:
linear-gradient(45deg,transparent 42%,var(--bad) 42% 58%,transparent 58%),
linear-gradient(-45deg,transparent 42%,var(--bad) 42% 58%,transparent 58%)}
i.drained{border-color:var(--muted)!important;background:
repeating-linear-gradient(45deg,var(--muted) 0 2px,transparent 2px 5px)}
i.unused{border-color:var(--muted)!important;border-style:dashed!important}
#changes{padding-left:18px;margin:0}
@media(max-width:480px){.class{grid-template-columns:1fr}.pool{flex:1 1 115px}}
)css";

constexpr std::string_view kDashboardBody = R"html(<header><h1>Heddle</h1>
<span id="state" class="muted">asking the server</span></header>
<p id="what" class="muted"></p>
<div class="tiles" id="tiles"></div>
<p><label id="choice" hidden>Charts of <select id="model"></select></label></p>
<div class="charts">
<figure id="latency"><figcaption></figcaption><svg role="img" aria-label="latency over time"></svg></figure>
<figure id="share"><figcaption></figcaption><svg role="img" aria-label="requests in time over time"></svg></figure>
<figure id="rate"><figcaption></figcaption><svg role="img" aria-label="answers per second over time"></svg></figure>
</div>
<p class="muted">The last five minutes while this page was open; each point is of the last ten seconds.</p>
<h2>Models</h2><p class="muted">Counts since the server started, latencies since the plan is in use.</p>
<div class="scroll"><table id="models"><thead><tr><th>model</th><th>SLO</th><th>planned</th><th>answered</th>
<th>in time</th><th>dropped</th><th>failed</th><th>waiting</th><th>p50</th><th>p99</th></tr></thead>
<tbody></tbody></table></div>
<h2>Plan: pipelines of pools</h2>
<p class="muted">Use is the busy share of a pool's devices over the last ten seconds or so.</p><div id="plan"></div>
<h2>Devices</h2><div class="key"><span><i class="busy"></i>busy</span><span><i></i>idle</span>
<span><i class="lost"></i>lost</span><span><i class="drained"></i>drained</span>
<span><i class="unused"></i>not in the plan</span></div><div id="classes"></div>
<div id="workers_part" hidden><h2>Workers</h2><div class="scroll"><table id="workers"><thead><tr><th>worker</th>
<th class="text">state</th><th>virtual devices</th><th>runs</th><th>losses</th></tr></thead><tbody></tbody></table>
</div>
</div>
<div id="changes_part" hidden><h2>Changes of the plan, the last first</h2><ul id="changes"></ul></div>
)html";

constexpr std::string_view kDashboardScript = R"html(<script>
'use strict';
const $ = id => document.getElementById(id);
const time = us => us >= 1e6 ? (us / 1e6).toPrecision(3) + ' s' : us >= 1e3 ? (us / 1e3).toPrecision(3) + ' ms'
  : Math.round(us) + ' us';
const percent = share => (100 * share).toFixed(1) + ' %';
const kKeep_ms = 300e3, kWindow_ms = 10e3;
let token = '', last = null, hover = null;
const samples = [];        // the answers of the last seconds
const course = new Map();  // model, '' for all -> points over time
// Text only ever enters as text: names come from files.
function element(tag, text, css) {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  if (css) e.className = css;
  return e;
}
function with_children(e, children) {
  e.append(...children);
  return e;
}
function fill(table, rows) {
  $(table).tBodies[0].replaceChildren(...rows.map(texts =>
    with_children(element('tr'), texts.map(text => element('td', text)))));
}
const settled = requests => Object.entries(requests).reduce((n, [k, v]) => k === 'invalid' ? n : n + v, 0);
const answered = requests => requests.in_time + requests.late;

// Of what came between two answers of the server: [greatest value, count] each.
function percentile(now, old, q) {
  const before = new Map(old);
  const parts = now.map(([value, n]) => [value, n - (before.get(value) || 0)]).filter(([, n]) => n > 0);
  let left = q * parts.reduce((n, part) => n + part[1], 0);
  for (const [value, n] of parts) if ((left -= n) <= 0) return value;
  return null;
}
function note(s, now) {
  samples.push({at: now, plans: s.plans, models: new Map(s.models.map(m => [m.name, m]))});
  while (samples.length > 2 && samples[1].at <= now - kWindow_ms) samples.shift();
  const from = samples[0], seconds = (now - from.at) / 1000;
  if (!(seconds > 0)) return;
  const all = {at: now, rate: 0, in_time: 0, settled: 0, planned: 0, p50: null, p99: null, slo: 1};
  for (const m of s.models) {
    const old = from.models.get(m.name);
    if (!old || settled(m.requests) < settled(old.requests)) continue;
    const ranges = from.plans === s.plans ? old.latency_ranges : [];  // they begin anew with each plan
    const p = {at: now, rate: (answered(m.requests) - answered(old.requests)) / seconds,
      in_time: m.requests.in_time - old.requests.in_time, settled: settled(m.requests) - settled(old.requests),
      planned: m.rate_per_s, slo: m.slo_us,
      p50: percentile(m.latency_ranges, ranges, .5), p99: percentile(m.latency_ranges, ranges, .99)};
    for (const sum of ['rate', 'in_time', 'settled', 'planned']) all[sum] += p[sum];
    for (const q of ['p50', 'p99']) if (p[q] !== null) all[q] = Math.max(all[q], p[q] / p.slo);
    keep(m.name, p);
  }
  keep('', all);
}
function keep(model, point) {
  if (!course.has(model)) course.set(model, []);
  const points = course.get(model);
  points.push(point);
  while (points[0].at < point.at - kKeep_ms) points.shift();
}

function svg(tag, attributes, text) {
  const e = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (text !== undefined) e.textContent = text;
  return e;
}
function round_up(v) {
  const p = 10 ** Math.floor(Math.log10(v));
  return p * [1, 2, 2.5, 5, 10].find(m => m * p >= v);
}
// Drawn in pixels, so that texts keep their size at every width.
function chart(id, title, points, lines, level, format, bottom = 0, top = 0) {
  const out = $(id).querySelector('svg'), width = out.clientWidth, height = 180;
  if (!width) return;
  const left = 58, right = width - 10, upper = 8, lower = height - 22;
  const values = points.flatMap(p => lines.map(l => l.of(p))).filter(v => v !== null);
  const most = top || 1.1 * Math.max(level ? level.value : 0, ...values) || 1;
  const step = round_up((most - bottom) / 5);
  const now = last.at, minutes = points.length ? Math.max(1, Math.ceil((now - points[0].at) / 60e3)) : 1;
  const x = at => right - (now - at) / (minutes * 60e3) * (right - left);
  const y = v => lower - (Math.min(v, most) - bottom) / (most - bottom) * (lower - upper);
  const parts = [];
  for (let v = bottom; v <= most * 1.0001; v += step) {
    parts.push(svg('line', {class: 'grid', x1: left, x2: right, y1: y(v), y2: y(v)}));
    parts.push(svg('text', {x: left - 6, y: y(v) + 4, 'text-anchor': 'end'}, format(v)));
  }
  for (let ago = 0; ago <= minutes * 60; ago += minutes > 1 ? 60 : 20) {
    const at = x(now - 1000 * ago);
    parts.push(svg('line', {class: 'grid', x1: at, x2: at, y1: upper, y2: lower}));
    parts.push(svg('text', {x: at, y: height - 6,
      'text-anchor': !ago ? 'end' : ago === minutes * 60 ? 'start' : 'middle'},
      !ago ? 'now' : minutes > 1 ? `-${ago / 60} min` : `-${ago} s`));
  }
  if (level) parts.push(svg('line', {class: 'level', x1: left, x2: right, y1: y(level.value), y2: y(level.value)}));
  for (const l of lines) {
    let path = '', pen = 'M';
    for (const p of points) {
      const v = l.of(p);
      if (v === null) { pen = 'M'; continue; }
      path += `${pen}${x(p.at).toFixed(1)} ${y(v).toFixed(1)}${pen === 'M' ? 'h.1' : ''}`;
      pen = 'L';
    }
    parts.push(svg('path', {d: path, class: l.css, 'stroke-linecap': 'round'}));
  }
  let shown = points[points.length - 1];
  if (hover && hover.id === id && points.length) {
    shown = points.reduce((a, b) => Math.abs(x(b.at) - hover.x) < Math.abs(x(a.at) - hover.x) ? b : a);
    parts.push(svg('line', {stroke: 'currentColor', x1: x(shown.at), x2: x(shown.at), y1: upper, y2: lower}));
  }
  out.setAttribute('viewBox', `0 0 ${width} ${height}`);
  out.replaceChildren(...parts);
  const when = shown && hover && hover.id === id ? `, ${Math.round((now - shown.at) / 1000)} s ago` : '';
  const caption = [element('b', title + when)];
  for (const l of lines) {
    const v = shown ? l.of(shown) : null, entry = element('span');
    entry.append(element('i', undefined, l.css), `${l.name} ${v === null ? '-' : format(v)}`);
    caption.push(entry);
  }
  if (level) caption.push(with_children(element('span'), [element('i', undefined, 'c'),
    `${level.name} ${format(level.value)}`]));
  $(id).querySelector('figcaption').replaceChildren(...caption);
}
function draw_charts() {
  if (!last) return;
  const names = last.status.models.map(m => m.name), choice = $('model');
  const wanted = names.length > 1 ? ['', ...names] : names;
  if (JSON.stringify([...choice.options].map(o => o.value)) !== JSON.stringify(wanted)) {
    const before = choice.value;
    choice.replaceChildren(...wanted.map(name => {
      const option = element('option', name || 'all models');
      option.value = name;
      return option;
    }));
    if (wanted.includes(before)) choice.value = before;
    $('choice').hidden = wanted.length < 2;
  }
  const model = choice.value, points = course.get(model) || [], now = points[points.length - 1];
  const of_all = names.length > 1 && model === '';
  const m = last.status.models.find(one => one.name === model);
  chart('latency', of_all ? 'Latency as a share of the SLO, worst model' : 'Latency of answers', points,
    [{name: 'p50', css: 'a', of: p => p.p50}, {name: 'p99', css: 'b', of: p => p.p99}],
    of_all ? {value: 1, name: 'SLO'} : m && {value: m.slo_us, name: 'SLO'}, of_all ? percent : time);
  // Closer where nearly all are in time.
  const least = Math.min(1, ...points.filter(p => p.settled).map(p => p.in_time / p.settled));
  chart('share', 'Requests answered within the SLO', points,
    [{name: 'in time', css: 'a', of: p => p.settled ? p.in_time / p.settled : null}], null,
    v => +(100 * v).toFixed(1) + ' %', least > .9 ? .9 : least > .5 ? .5 : 0, 1);
  chart('rate', 'Answers per second', points, [{name: 'answered', css: 'a', of: p => p.rate}],
    now && {value: now.planned, name: 'planned'}, v => +v.toPrecision(3) + '/s');
}

function tile(label, value, note) {
  const e = element('div', undefined, 'tile');
  e.append(element('span', label), element('b', value), element('small', note));
  return e;
}
function draw_tiles(s) {
  const points = course.get('') || [], p = points[points.length - 1];
  const total = name => s.classes.reduce((n, c) => n + c[name], 0);
  const waiting = s.models.reduce((n, m) => n + m.queued, 0), lost = total('lost');
  $('tiles').replaceChildren(
    tile('in time', p && p.settled ? percent(p.in_time / p.settled) : '-', 'of requests, last 10 s'),
    tile('p99', p && p.p99 !== null ? percent(p.p99) : '-', 'of the SLO, worst model, last 10 s'),
    tile('answered', p ? p.rate.toFixed(1) + '/s' : '-', p ? `planned ${p.planned.toFixed(1)}/s` : ''),
    tile('waiting', waiting, 'requests, now'),
    tile('devices busy', `${total('busy')} of ${total('used')}`, lost ? `${lost} lost` : 'in the plan, now'));
}
function draw_plan(pools) {
  const chains = new Map();
  for (const p of pools) {
    const pool = element('div', `${p.devices} x ${p.class}${p.share > 1 ? '/' + p.share : ''}`, 'pool');
    const off = p.predicted_s > 0 ? `, ${percent(p.busy_s / p.predicted_s - 1)} off plan` : '';
    pool.append(element('div', `blocks ${p.blocks[0]}..${p.blocks[1] - 1}, batch ${p.batch}`, 'muted'),
      element('div', `use ${percent(p.use)}, ${p.running} busy${off}`, 'muted'));
    const bar = pool.appendChild(element('div', undefined, 'bar'));
    bar.appendChild(element('i')).style.width = 100 * Math.min(1, p.use) + '%';
    if (!chains.has(p.pipeline)) {
      chains.set(p.pipeline, with_children(element('div', undefined, 'chain'), [element('b', p.model)]));
    } else {
      chains.get(p.pipeline).append(element('span', '\u2192'));
    }
    chains.get(p.pipeline).append(pool);
  }
  $('plan').replaceChildren(...chains.values());
}
// A square for each device; of many devices, a bar with a part for each state.
function draw_classes(s) {
  $('classes').replaceChildren(...s.classes.map(c => {
    const counts = {busy: c.busy, idle: c.used - c.busy - c.lost, lost: c.lost,
      drained: (s.drained || {})[c.name] || 0, unused: c.devices - c.used};
    const all = c.devices + counts.drained, many = all > 400;
    const squares = element('div', undefined, many ? 'squares many' : 'squares'), words = [];
    for (const [state, n] of Object.entries(counts)) {
      if (!(n > 0)) continue;
      words.push(`${n} ${state === 'unused' ? 'not in the plan' : state}`);
      for (let i = 0; i < (many ? 1 : n); ++i) {
        const square = squares.appendChild(element('i', undefined, state));
        if (many) square.style.flex = `${n} 1 0`;
      }
    }
    squares.setAttribute('role', 'img');
    squares.setAttribute('aria-label', words.join(', '));
    return with_children(element('div', undefined, 'class'), [element('b', c.name),
      with_children(element('div'), [squares, element('div', `${all} devices: ${words.join(', ')}`, 'muted')])]);
  }));
}
function draw(s, now) {
  last = {status: s, at: now};
  $('state').textContent = s.state;
  $('state').className = s.state === 'serving' ? 'muted' : 'bad';
  $('what').textContent = s.fleet ? `${s.fleet}, plan by ${s.planner}, up ${Math.round(s.uptime_s)} s, ` +
    `${s.plans} plan${s.plans === 1 ? '' : 's'} so far, decision p99 ${time(s.decision.p99_us)}` : 'no model is loaded';
  note(s, now);
  draw_tiles(s);
  draw_charts();
  fill('models', s.models.map(m => {
    const all = settled(m.requests);
    return [m.name, time(m.slo_us), m.rate_per_s.toFixed(1) + '/s', answered(m.requests),
      all ? percent(m.requests.in_time / all) : '', m.requests.dropped,
      m.requests.failed + m.requests.withdrawn, m.queued, time(m.latency.p50_us), time(m.latency.p99_us)];
  }));
  draw_plan(s.pools);
  draw_classes(s);
  const workers = s.workers || [], changes = s.changes || [];
  $('workers_part').hidden = !workers.length;
  fill('workers', workers.map(w =>
    [w.name, w.state + (w.reason ? ': ' + w.reason : ''), w.virtual_devices, w.runs, w.losses]));
  for (const row of $('workers').tBodies[0].rows) row.cells[1].className = 'text';
  $('changes_part').hidden = !changes.length;
  $('changes').replaceChildren(...changes.slice(-20).reverse().map(c => element('li', `${c.at} ${c.what}: ${c.text}`)));
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
$('model').addEventListener('change', draw_charts);
addEventListener('resize', draw_charts);
for (const id of ['latency', 'share', 'rate']) {
  $(id).addEventListener('pointermove', e => {
    hover = {id, x: e.clientX - $(id).querySelector('svg').getBoundingClientRect().left};
    draw_charts();
  });
  $(id).addEventListener('pointerleave', () => { hover = null; draw_charts(); });
}
ask();
</script></body></html>
)html";

}  // namespace

std::string_view dashboard_page() {
  static const std::string page =
      page_head("Heddle", kDashboardStyle) + std::string(kDashboardBody) + std::string(kDashboardScript);
  return page;
}

}  // namespace heddle
