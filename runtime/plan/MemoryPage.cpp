#include "runtime/plan/MemoryPage.h"

#include <string_view>

#include <nlohmann/json.hpp>

#include "runtime/plan/MemoryTable.h"
#include "runtime/plan/PlanAccess.h"

namespace strata {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view pageBegin = R"html(<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Memory of a plan</title>
<style>
:root { color-scheme: light dark; --line: #8886; --faint: #8883; }
body { font: 14px/1.45 system-ui, sans-serif; margin: 1.5rem auto; padding: 0 1rem; max-width: 78rem; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.05rem; margin: 1.6rem 0 .4rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
td, th { padding: .15rem .8rem .15rem 0; text-align: right; border-bottom: 1px solid var(--faint); }
td:first-child, th:first-child, td.name, th.name { text-align: left; }
select, input { font: inherit; margin-right: 1rem; }
#frame { overflow-x: auto; border: 1px solid var(--line); margin-top: .6rem; }
canvas { display: block; height: 26rem; }
#hover { min-height: 3.2em; margin-top: .4rem; white-space: pre-line; }
</style></head><body>
<h1 id="title"></h1>
<div id="tables"></div>
<h2>Arena over time</h2>
<p><label>Stage <select id="stage"></select></label><label>Forward <select id="forward"></select></label>
<label>Zoom <input id="zoom" type="range" min="1" max="40" value="1"></label></p>
<div id="facts"></div>
<div id="frame"><canvas id="arena"></canvas></div>
<div id="hover">Commands run from left to right; a buffer's height is its bytes, its length the commands
that it lives through. Point at one.</div>
<script id="plan" type="application/json">)html";

constexpr std::string_view pageEnd = R"html(</script>
<script>
"use strict";
const plan = JSON.parse(document.getElementById("plan").textContent);
const byId = id => document.getElementById(id);
const units = ["B", "KiB", "MiB", "GiB", "TiB"];
function readable(bytes) {
  let unit = 0;
  for (; bytes >= 1024 && unit + 1 < units.length; ++unit) bytes /= 1024;
  return (unit ? bytes.toFixed(2) : bytes) + " " + units[unit];
}
function table(parent, heads, rows) {
  const element = parent.appendChild(document.createElement("table"));
  const line = (cells, kind) => {
    const row = element.insertRow();
    cells.forEach(([text, isName]) => {
      const cell = row.appendChild(document.createElement(kind));
      cell.textContent = text;
      if (isName) cell.className = "name";
    });
  };
  line(heads, "th");
  rows.forEach(cells => line(cells, "td"));
}
byId("title").textContent = `${plan.table.model}: ${plan.table.max_sequences} sequences of ` +
    `${plan.table.max_context} tokens, chunks of ${plan.table.chunk_rows}`;
plan.table.stages.forEach(stage => {
  const tables = byId("tables");
  tables.appendChild(document.createElement("h2")).textContent =
      `Stage ${stage.name} on ${stage.target}: layers ${stage.first_layer}..${stage.end_layer}`;
  const rows = stage.memory.map(m => [[m.class, true], [m.name, true], [m.bytes],
      [readable(m.bytes) + (m.per ? " per " + m.per : "")]]);
  for (const [name, bytes] of Object.entries(stage.totals))
    if (bytes) rows.push([["total", true], [name, true], [bytes], [readable(bytes)]]);
  table(tables, [["class", true], ["memory", true], ["bytes"], [""]], rows);
  table(tables, [["next larger", true], ["would take", true], ["more bytes"], [""]],
      stage.growth.map(g => [[g.what, true], [g.to, true], [(g.exact ? "" : "about ") + g.bytes],
          [readable(g.bytes)]]));
});
const stageChoice = byId("stage"), forwardChoice = byId("forward"), canvas = byId("arena");
function option(select, text) { select.appendChild(document.createElement("option")).textContent = text; }
plan.stages.forEach((stage, k) => option(stageChoice, plan.table.stages[k].name));
const forwardOf = () => plan.stages[stageChoice.value ? stageChoice.selectedIndex : 0]
    .forwards[forwardChoice.selectedIndex];
let hovered = -1;
function scales() {
  const forward = forwardOf();
  return { x: canvas.clientWidth / Math.max(1, forward.commands.length),
           y: (canvas.clientHeight - 8) / Math.max(1, forward.peak), bottom: canvas.clientHeight };
}
function layerOf(forward, buffer) {
  const command = forward.commands[Math.min(buffer[3], forward.commands.length - 1)];
  return command ? command[1] : -1;
}
function draw() {
  const forward = forwardOf();
  const frame = byId("frame"), ratio = window.devicePixelRatio || 1;
  // Browsers refuse wider canvases.
  const width = Math.min(frame.clientWidth * byId("zoom").value, 32000 / ratio);
  canvas.style.width = width + "px";
  canvas.width = width * ratio;
  canvas.height = canvas.clientHeight * ratio;
  const pen = canvas.getContext("2d"), scale = scales();
  const ink = getComputedStyle(document.body).color;
  pen.scale(ratio, ratio);
  forward.buffers.forEach((buffer, k) => {
    const [, offset, bytes, lower, upper] = buffer;
    const hue = (layerOf(forward, buffer) + 2) * 137.5 % 360;
    pen.fillStyle = `hsl(${hue} 60% 55% / ${k === hovered ? 1 : 0.65})`;
    const x = lower * scale.x, w = (upper - lower) * scale.x, h = bytes * scale.y;
    const y = scale.bottom - (offset + bytes) * scale.y;
    pen.fillRect(x, y, w, h);
    if (w > 2 && h > 2) {
      pen.strokeStyle = k === hovered ? ink : "#8888";
      pen.lineWidth = k === hovered ? 2 : 0.5;
      pen.strokeRect(x, y, w, h);
    }
  });
  pen.strokeStyle = ink;
  pen.lineWidth = 1;
  pen.setLineDash([6, 4]);
  pen.beginPath();
  const bound = scale.bottom - forward.lower_bound * scale.y;
  pen.moveTo(0, bound);
  pen.lineTo(width, bound);
  pen.stroke();
}
function choose() {
  const forward = forwardOf();
  hovered = -1;
  byId("facts").textContent = `${forward.rows} rows, ${forward.sequences} sequences: ` +
      `${forward.commands.length} commands, ${forward.buffers.length} buffers; ` +
      `peak ${forward.peak} (${readable(forward.peak)}), lower bound ${forward.lower_bound} ` +
      `(dashed), ${forward.proven ? "proven" : "not proven"}`;
  draw();
}
stageChoice.onchange = () => {
  forwardChoice.replaceChildren();
  const forwards = plan.stages[stageChoice.selectedIndex].forwards;
  forwards.forEach(forward => option(forwardChoice, forward.name));
  forwardChoice.selectedIndex =
      forwards.reduce((best, forward, k) => forward.peak > forwards[best].peak ? k : best, 0);
  choose();
};
forwardChoice.onchange = choose;
byId("zoom").oninput = draw;
window.onresize = draw;
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
canvas.onmousemove = event => {
  const forward = forwardOf(), scale = scales();
  const time = Math.floor(event.offsetX / scale.x);
  const at = (scale.bottom - event.offsetY) / scale.y;
  const found = forward.buffers.findIndex(([, offset, bytes, lower, upper]) =>
      lower <= time && time < upper && offset <= at && at < offset + bytes);
  const command = forward.commands[time];
  let text = command ? `command ${time}: ${command[0]}` + (command[1] < 0 ? "" : ` (layer ${command[1]})`) : "";
  if (found >= 0) {
    const [name, offset, bytes, lower, upper] = forward.buffers[found];
    const op = k => forward.commands[k] ? forward.commands[k][0] : "the end";
    text += `\nbuffer ${name}: ${bytes} bytes (${readable(bytes)}) at ${offset}, ` +
        `layer ${layerOf(forward, forward.buffers[found])}; ` +
        `from command ${lower} (${op(lower)}) to ${upper - 1} (${op(upper - 1)})`;
  }
  byId("hover").textContent = text;
  if (found !== hovered) { hovered = found; draw(); }
};
stageChoice.onchange();
</script></body></html>
)html";

Json arenaOf(const fb::Plan &plan, const fb::Forward &forward) {
  const fb::Bucket &bucket = *plan.buckets()->Get(forward.bucket());
  Json buffers = Json::array(), commands = Json::array();
  for (uint32_t i = 0; i < count(forward.buffers()); ++i) {
    const fb::Buffer &buffer = *forward.buffers()->Get(i);
    buffers.push_back(
        {text(buffer.name()), buffer.offset(), buffer.bytes(), buffer.lower(), buffer.upper()});
  }
  for (uint32_t i = 0; i < count(forward.commands()); ++i) {
    const fb::Command &command = *forward.commands()->Get(i);
    commands.push_back({text(command.op()), command.layer()});
  }
  return {{"name", text(bucket.name())},
          {"rows", bucket.rows()},
          {"sequences", bucket.sequences()},
          {"peak", forward.peak()},
          {"lower_bound", forward.lower_bound()},
          {"proven", forward.proven()},
          {"buffers", buffers},
          {"commands", commands}};
}

} // namespace

std::string memoryPageHtml(const fb::Plan &plan) {
  Json stages = Json::array();
  for (uint32_t s = 0; s < count(plan.stages()); ++s) {
    Json forwards = Json::array();
    const fb::Stage &stage = *plan.stages()->Get(s);
    for (uint32_t f = 0; f < count(stage.forwards()); ++f)
      forwards.push_back(arenaOf(plan, *stage.forwards()->Get(f)));
    stages.push_back({{"forwards", forwards}});
  }
  Json data = {{"table", Json::parse(memoryTableJson(plan))}, {"stages", stages}};
  std::string page(pageBegin);
  // Names come from checkpoints: nothing in them may end the script.
  for (char c : data.dump(-1, ' ', false, Json::error_handler_t::replace))
    if (c == '<')
      page += "\\u003c";
    else
      page += c;
  page += pageEnd;
  return page;
}

} // namespace strata
