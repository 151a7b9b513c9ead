// Charts: uPlot draws them, a sentence and a table say the same to whoever does not see them.
import { element, emptiness } from "./elements.js";

const COLOURS = 9;
const ROWS = 60;
const HEIGHT = 210;
const STEPS = { Left: -1, Right: 1, Home: -Infinity, End: Infinity };

function style(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function colour(index) {
  return style(`--line-${(index % COLOURS) + 1}`);
}

export function number(value) {
  if (value === null || value === undefined) return "\u2013";
  const size = Math.abs(value);
  if (size >= 1e5) return value.toLocaleString("en", { notation: "compact", maximumFractionDigits: 2 });
  if (size && size < 1e-3) return value.toExponential(2);
  return value.toLocaleString("en", { maximumSignificantDigits: 4 });
}

export function clock(seconds) {
  const time = new Date(1000 * seconds);
  return time.toLocaleString("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit" });
}

/** Columns on one axis of time, as uPlot wants them: the last, least and greatest of each line. */
function columns(chart) {
  const tables = chart.series.map((line) => [line.x, line.last, line.low, line.high]);
  // A gap of a line is null; where another line alone has a point it is undefined, and the line goes on.
  const joined = uPlot.join(tables, tables.map(() => [0, 2, 2, 2]));
  if (chart.kind !== "stack") return joined;
  const sums = joined[0].map(() => 0);
  return [joined[0], ...chart.series.flatMap((_line, index) => {
    const sum = joined[1 + 3 * index].map((value, at) => (sums[at] += value ?? 0));
    return [sum, sum, sum];
  })];
}

function hasSpread(line) {
  return line.low.some((value, at) => value !== line.last[at]) || line.high.some((value, at) => value !== line.last[at]);
}

export class Chart {
  constructor(found, span, select) {
    this.id = found.id;
    this.select = select;
    this.title = element("h3", {}, found.title);
    this.unit = element("span", { class: "unit" });
    this.plot = element("div", { class: "plot", tabindex: 0, role: "img" });
    this.legend = element("ul", { class: "legend" });
    this.rows = element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `${found.title}, as a table` });
    this.details = element("details", {}, element("summary", {}, "Show as a table"), this.rows);
    this.head = element("div", { class: "head" }, this.title, this.unit);
    this.root = element("figure", { class: "chart", "data-chart": found.id }, this.head);
    this.details.addEventListener("toggle", () => this.list());
    this.plot.addEventListener("keydown", (event) => this.key(event));
    this.show(found, span, []);
  }

  /** Draw what is new; the drawing is made again only where its lines are others. */
  show(found, span, marks) {
    const shown = JSON.stringify([found, span, marks]);
    if (shown === this.shown) return;
    this.shown = shown;
    this.found = found;
    this.span = span;
    this.marks = marks;
    this.title.textContent = found.title;
    this.unit.textContent = found.empty ? "" : found.unit;
    if (found.empty) {
      this.drop();
      this.root.replaceChildren(this.head, emptiness(found.empty));
      return;
    }
    if (!this.plot.isConnected) this.root.replaceChildren(this.head, this.plot, this.legend, this.details);
    this.plot.setAttribute("aria-label", `${found.title}. ${found.summary}`);
    const lines = JSON.stringify([found.kind, found.unit, found.series.map((line) => [line.name, hasSpread(line)])]);
    this.data = columns(found);
    if (this.drawing && lines === this.lines) {
      this.drawing.setData(this.data, false);
      this.drawing.setScale("x", { min: span.begin, max: span.end });
    } else {
      this.lines = lines;
      this.draw();
    }
    this.values(null);
    if (this.details.open) this.list();
  }

  draw() {
    this.drop();
    if (this.found.empty || !this.plot.isConnected) return;
    const width = this.plot.clientWidth;
    if (!width) return;
    const axis = { stroke: style("--muted"), grid: { stroke: style("--grid"), width: 1 }, ticks: { stroke: style("--grid"), width: 1, size: 4 }, font: "11px system-ui, sans-serif" };
    const stacked = this.found.kind === "stack";
    const series = [{}];
    const bands = [];
    this.found.series.forEach((line, index) => {
      const stroke = colour(index);
      const at = series.length;
      const hidden = { stroke: "transparent", width: 0, points: { show: false } };
      const few = line.x.length < 40;
      series.push({ stroke, width: stacked ? 1 : 1.75, spanGaps: false, points: { show: few && !stacked, size: 4, stroke, fill: stroke },
        fill: stacked && !index ? `${stroke}88` : undefined }, hidden, hidden);
      if (stacked && index) bands.push({ series: [at, at - 3], fill: `${stroke}88` });
      else if (!stacked && hasSpread(line)) bands.push({ series: [at + 2, at + 1], fill: `${stroke}30` });
    });
    this.drawing = new uPlot({
      width,
      height: HEIGHT,
      series,
      bands,
      legend: { show: false },
      scales: { x: { time: true, min: this.span.begin, max: this.span.end }, y: stacked ? { range: [0, 100] } : { range: (_u, low, high) => room(low, high) } },
      axes: [{ ...axis, values: (_u, times, _axis, _space, step) => dates(times, step) }, { ...axis, size: 58, values: (_u, values) => values.map(number) }],
      cursor: { sync: { key: "watch", setSeries: false }, drag: { x: true, y: false, setScale: false }, points: { size: 6 } },
      hooks: {
        setCursor: [(u) => this.values(u.cursor.idx ?? null)],
        setSelect: [(u) => this.selected(u)],
        draw: [(u) => this.drawMarks(u)],
      },
    }, this.data, this.plot);
    this.drawing.setScale("x", { min: this.span.begin, max: this.span.end });
  }

  drop() {
    this.drawing?.destroy();
    this.drawing = null;
  }

  resize() {
    const width = this.plot.clientWidth;
    if (!width || this.found.empty) return;
    if (this.drawing) this.drawing.setSize({ width, height: HEIGHT });
    else this.draw();
  }

  selected(u) {
    if (u.select.width < 4) return;
    const ends = [u.select.left, u.select.left + u.select.width].map((left) => u.posToVal(left, "x"));
    u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    this.select(ends[0], ends[1]);
  }

  drawMarks(u) {
    const { ctx } = u;
    const { top, height } = u.bbox;
    ctx.save();
    ctx.lineWidth = devicePixelRatio;
    for (const mark of this.marks) {
      const x = Math.round(u.valToPos(mark.time, "x", true));
      if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) continue;
      ctx.strokeStyle = style(mark.kind === "restart" ? "--bad" : "--checkpoint");
      ctx.setLineDash(mark.kind === "restart" ? [] : [3 * devicePixelRatio, 4 * devicePixelRatio]);
      ctx.beginPath();
      ctx.moveTo(x, top);
      ctx.lineTo(x, top + height);
      ctx.stroke();
    }
    ctx.restore();
  }

  /** The values of all lines at a point, the last ones without one. */
  values(at) {
    if (this.found.empty) return;
    const items = this.found.series.map((line, index) => {
      const column = this.data[1 + 3 * index];
      let place = at;
      if (place === null) {
        place = column.length - 1;
        while (place > 0 && (column[place] === null || column[place] === undefined)) place -= 1;
      }
      let value = column[place];
      if (this.found.kind === "stack" && index && value !== undefined) value -= this.data[1 + 3 * (index - 1)][place];
      const swatch = element("span", { class: `swatch line-${(index % COLOURS) + 1}`, "aria-hidden": "true" });
      return element("li", {}, swatch, `${line.name} `, element("b", {}, this.found.unit === "%" ? `${number(value)} %` : number(value)));
    });
    for (const kind of new Set(this.marks.map((mark) => mark.kind))) {
      items.push(element("li", { class: "kind" }, element("span", { class: `swatch ${kind}`, "aria-hidden": "true" }), `${kind}s`));
    }
    const time = at === null ? null : element("li", { class: "time" }, clock(this.data[0][at]));
    this.legend.replaceChildren(...items, ...(time ? [time] : []));
  }

  key(event) {
    const step = STEPS[event.key.replace("Arrow", "")];
    if (step === undefined || !this.drawing) return;
    event.preventDefault();
    const times = this.data[0];
    const before = this.drawing.cursor.idx ?? (step > 0 ? -1 : times.length);
    const at = Math.max(0, Math.min(times.length - 1, before + step));
    this.drawing.setCursor({ left: this.drawing.valToPos(times[at], "x"), top: HEIGHT / 2 });
  }

  list() {
    if (!this.details.open || this.found.empty) return;
    const times = this.data[0];
    const every = Math.max(1, Math.ceil(times.length / ROWS));
    const head = element("tr", {}, element("th", { scope: "col" }, "time"), ...this.found.series.map((line) => element("th", { scope: "col", class: "number" }, line.name)));
    const rows = [];
    for (let at = times.length - 1; at >= 0; at -= every) {
      const cells = this.found.series.map((_line, index) => {
        let value = this.data[1 + 3 * index][at];
        if (this.found.kind === "stack" && index) value -= this.data[1 + 3 * (index - 1)][at];
        return element("td", { class: "number" }, number(value));
      });
      rows.push(element("tr", {}, element("th", { scope: "row" }, clock(times[at])), ...cells));
    }
    const said = every > 1 ? `${this.found.title}: every ${every}th point, the newest first` : `${this.found.title}: the newest point first`;
    this.rows.replaceChildren(element("table", {}, element("caption", {}, said), element("thead", {}, head), element("tbody", {}, ...rows)));
  }
}

/** Labels of the axis of time: hours of a day of 24, and the day where it begins. */
function dates(times, step) {
  let before = "";
  return times.map((seconds) => {
    const time = new Date(1000 * seconds);
    const day = time.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
    if (step >= 86400) return day;
    const hour = time.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second: step < 60 ? "2-digit" : undefined });
    const shown = day === before ? hour : `${hour}\n${day}`;
    before = day;
    return shown;
  });
}

/** Some room above and below, also where all values are equal. */
function room(low, high) {
  if (low === null || high === null || low === undefined) return [0, 1];
  const space = (high - low) * 0.08 || Math.abs(high) * 0.1 || 1;
  return [low >= 0 && low - space < 0 ? 0 : low - space, high + space];
}
