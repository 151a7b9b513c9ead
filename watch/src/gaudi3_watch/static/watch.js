// The page: asks for the data again and again, and draws what has changed.
import * as address from "./address.js";
import { Chart, clock } from "./charts.js";
import { element, emptiness, replace, table, tile } from "./elements.js";

const SPANS = [["15 min", 900], ["1 h", 3600], ["6 h", 21600], ["1 d", 86400], ["7 d", 604800]];
const PATIENCE = 20000;
const RETRY = 3000;
const at = (id) => document.getElementById(id);

let view = address.read(location.hash);
let shown = null;
let body = "";
let heard = 0;
let timer = 0;
let asking = null;
const sections = new Map();

function go(changes) {
  const next = address.write({ ...view, ...changes });
  if (next === address.write(view)) return;
  location.hash = next === "#" ? "#all" : next;
}

function query() {
  const asked = new URLSearchParams();
  if (view.begin !== null) asked.set("from", view.begin);
  if (view.end !== null) asked.set("to", view.end);
  if (view.last) asked.set("last", view.last);
  if (view.node) asked.set("node", view.node);
  if (view.job) asked.set("job", view.job);
  const width = document.querySelector(".plot")?.clientWidth || Math.min(document.documentElement.clientWidth, 700);
  asked.set("width", Math.max(100, 50 * Math.round(width / 50)));
  return `/data.json?${asked}`;
}

async function ask() {
  clearTimeout(timer);
  asking?.abort();
  const mine = new AbortController();
  asking = mine;
  const limit = setTimeout(() => mine.abort(), PATIENCE);
  let wait = RETRY;
  try {
    const answer = await fetch(query(), { signal: mine.signal, cache: "no-cache", credentials: "same-origin" });
    const text = await answer.text();
    if (!answer.ok) throw new Error(text.trim() || `the server answers ${answer.status}`);
    if (mine !== asking) return;
    heard = Date.now();
    if (text !== body) {
      body = text;
      shown = JSON.parse(text);
      render();
    }
    wait = 1000 * shown.poll * (shown.state.ended ? 5 : 1);
    live("");
  } catch (error) {
    if (mine !== asking) return;
    live(error.name === "AbortError" || error instanceof TypeError ? "gaudi3-watch does not answer: see whether it still runs." : error.message);
  } finally {
    clearTimeout(limit);
    if (mine === asking) timer = setTimeout(ask, document.hidden ? Math.max(wait, 15000) : wait);
  }
}

function live(problem) {
  const ended = shown?.state.ended;
  replace(at("live"), [problem, ended], () => [problem || (ended ? "Ended" : "Live")]);
  at("live").className = problem ? "live bad" : ended ? "live" : "live good";
}

function ago(seconds) {
  if (seconds < 60) return `${Math.max(0, Math.round(seconds))} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} d`;
}

function tick() {
  const updated = shown?.state.updated;
  at("heard").textContent = updated ? `Last word ${ago(Date.now() / 1000 - updated)} ago.` : "";
}

function options(select, label, names, chosen, none) {
  label.hidden = !names.length;
  replace(select, names, () => [...(none ? [element("option", { value: "" }, none)] : []), ...names.map((name) => element("option", { value: name }, name))]);
  select.value = names.includes(chosen) ? chosen : none ? "" : names[0] ?? "";
}

function render() {
  document.title = `${shown.title} \u00b7 ${shown.state.name} \u00b7 gaudi3-watch`;
  at("title").textContent = shown.title;
  at("state").textContent = shown.state.name;
  at("state").className = `pill ${shown.state.level}`;
  if (at("said").textContent !== shown.state.text) at("said").textContent = shown.state.text;
  at("source").textContent = shown.source;
  at("span").textContent = `\u00b7 ${clock(shown.span.begin)} to ${clock(shown.span.end)}`;
  at("simulated").hidden = !shown.simulated;
  at("simulated").textContent = shown.simulated;
  at("problems").hidden = !shown.problems.length;
  replace(at("problems"), shown.problems, () => shown.problems.map((each) => element("li", { class: each.level }, each.text, each.sample ? " " : null, each.sample ? element("code", {}, each.sample) : null)));
  options(at("job"), at("job-label"), shown.jobs, shown.job, "");
  options(at("node"), at("node-label"), shown.nodes, view.node, "all nodes");
  spans();
  replace(at("sections"), shown.sections.map((each) => [each.id, each.title]), () => shown.sections.map((each) =>
    element("li", {}, element("a", { href: address.write({ ...view, section: each.id }), "data-section": each.id }, each.title))));
  for (const link of at("sections").querySelectorAll("a")) link.href = address.write({ ...view, section: link.dataset.section });
  for (const each of shown.sections) section(each);
  tick();
}

function spans() {
  // A job is shown from its beginning, a cluster for its usual span.
  const last = view.last || (view.begin === null ? shown.usual : null);
  const choices = shown.usual ? SPANS : [...SPANS, ["All", 0]];
  replace(at("spans"), [last, choices], () => choices.map(([name, seconds]) => {
    const pressed = last === seconds;
    const made = element("button", { type: "button", "aria-pressed": pressed ? "true" : "false" }, name);
    made.addEventListener("click", () => go({ begin: null, end: null, last: seconds || null }));
    return made;
  }));
}

function section(found) {
  let mine = sections.get(found.id);
  if (!mine) {
    mine = { tiles: element("dl", { class: "tiles" }), charts: element("div", { class: "charts" }), tables: element("div", { class: "tables" }), empty: element("div", {}), drawn: new Map() };
    mine.title = element("h2", { tabindex: -1, id: `title-${found.id}` }, found.title);
    mine.root = element("section", { "aria-labelledby": `title-${found.id}`, "data-section": found.id }, mine.title, mine.empty, mine.tiles, mine.charts, mine.tables);
    at("content").append(mine.root);
    sections.set(found.id, mine);
    if (view.section === found.id) requestAnimationFrame(() => reach(found.id));
  }
  replace(mine.empty, found.empty ?? null, () => (found.empty ? [emptiness(found.empty)] : []));
  mine.tiles.hidden = !found.tiles.length;
  replace(mine.tiles, found.tiles, () => found.tiles.map(tile));
  const link = (node) => address.write({ ...view, node, section: found.id });
  replace(mine.tables, [found.tables, view], () => found.tables.map((each) => table(each, link)));
  const wanted = found.charts.map((each) => each.id);
  for (const [id, chart] of mine.drawn) {
    if (!wanted.includes(id)) {
      chart.drop();
      chart.root.remove();
      mine.drawn.delete(id);
    }
  }
  const span = { begin: shown.span.begin, end: shown.span.end };
  const marks = ["training", "goodput"].includes(found.id) ? shown.marks : [];
  for (const each of found.charts) {
    if (!mine.drawn.has(each.id)) {
      const chart = new Chart({ ...each, empty: { why: "", remedy: "" } }, span, (begin, end) => go({ begin, end, last: null }));
      mine.drawn.set(each.id, chart);
      mine.charts.append(chart.root);
      sizes.observe(chart.root);
    }
    mine.drawn.get(each.id).show(each, span, marks);
  }
}

const sizes = new ResizeObserver((entries) => {
  for (const entry of entries) {
    for (const mine of sections.values()) for (const chart of mine.drawn.values()) if (chart.root === entry.target) chart.resize();
  }
});

function reach(id) {
  const title = at(`title-${id}`);
  title?.scrollIntoView({ block: "start" });
  title?.focus({ preventScroll: true });
}

function move(by, zoom) {
  if (!shown) return;
  const { begin, end } = shown.span;
  const middle = (begin + end) / 2 + by * (end - begin);
  const half = ((end - begin) / 2) * zoom;
  go({ begin: Math.round(middle - half), end: Math.max(Math.round(middle + half), Math.round(middle - half) + 1), last: null });
}

function theme(chosen) {
  document.documentElement.dataset.theme = chosen;
  at("theme").textContent = chosen === "dark" ? "Light" : "Dark";
  at("theme").setAttribute("aria-label", `Change to ${chosen === "dark" ? "light" : "dark"} colours`);
  for (const mine of sections.values()) for (const chart of mine.drawn.values()) chart.draw();
}

at("theme").addEventListener("click", () => {
  const chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  try { localStorage.setItem("gaudi3-watch-theme", chosen); } catch (_error) { /* it holds for this visit */ }
  theme(chosen);
});
at("skip").addEventListener("click", (event) => { event.preventDefault(); at("main").focus(); });
at("earlier").addEventListener("click", () => move(-0.5, 1));
at("later").addEventListener("click", () => move(0.5, 1));
at("in").addEventListener("click", () => move(0, 0.5));
at("out").addEventListener("click", () => move(0, 2));
at("job").addEventListener("change", () => go({ job: at("job").value, begin: null, end: null }));
at("node").addEventListener("change", () => go({ node: at("node").value }));
addEventListener("hashchange", () => {
  const before = view;
  view = address.read(location.hash);
  if (view.section && view.section !== before.section) reach(view.section);
  if (shown) render();
  if (["begin", "end", "last", "node", "job"].some((name) => view[name] !== before[name])) ask();
});
document.addEventListener("visibilitychange", () => { if (!document.hidden && Date.now() - heard > RETRY) ask(); });
setInterval(tick, 1000);
theme(document.documentElement.dataset.theme);
ask();
