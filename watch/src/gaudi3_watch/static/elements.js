// Elements of the page. Every text is a text node: what a node, a job or a file says is never read as HTML.

/** An element with attributes and children; children that are no elements become text. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === undefined || value === null) continue;
    made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

/** Replace the children where what they show has changed; a link that had the focus gets it back. */
export function replace(place, content, make) {
  const shown = JSON.stringify(content);
  if (place.shown === shown) return;
  place.shown = shown;
  const focused = place.contains(document.activeElement) ? document.activeElement.textContent : null;
  place.replaceChildren(...make());
  if (focused !== null) [...place.querySelectorAll("a, button")].find((each) => each.textContent === focused)?.focus();
}

export function emptiness(found) {
  return element("div", { class: "empty" }, element("p", {}, element("strong", {}, found.why)), element("p", {}, found.remedy));
}

export function tile(found) {
  const share = found.share === undefined ? null
    : element("progress", { max: 1, value: found.share, "aria-label": `${found.label}: ${Math.round(100 * found.share)} %` });
  return element("div", { class: `tile ${found.level}` },
    element("dt", {}, found.label),
    element("dd", {}, element("span", { class: "value" }, found.value), share,
      found.detail ? element("span", { class: "detail" }, found.detail) : null));
}

/** A cell is a text, or one with a level and a node that it leads to. */
function cell(found, tag, attributes, link) {
  if (typeof found === "string") return element(tag, attributes, found);
  const level = found.level ? element("span", { class: `mark ${found.level}` }, found.text) : found.text;
  const inside = found.node && link ? element("a", { href: link(found.node) }, level) : level;
  return element(tag, attributes, inside);
}

export function table(found, link) {
  const numbers = new Set(found.numbers);
  const kind = (column) => (numbers.has(column) ? "number" : "");
  if (found.empty) return element("div", { class: "listed" }, element("h3", {}, found.title), emptiness(found.empty));
  const head = element("tr", {}, ...found.columns.map((name, column) => element("th", { scope: "col", class: kind(column) }, name)));
  const rows = found.rows.map((row) => element("tr", {},
    ...row.map((each, column) => cell(each, column ? "td" : "th", { class: kind(column), scope: column ? null : "row" }, link))));
  const made = element("table", {}, element("caption", {}, found.title), element("thead", {}, head), element("tbody", {}, ...rows));
  const more = found.more ? element("p", { class: "more" }, found.more) : null;
  const note = found.note ? element("p", { class: "more" }, found.note) : null;
  return element("div", { class: "listed" },
    element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": found.title }, made), more, note);
}
