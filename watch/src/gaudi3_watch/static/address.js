// What the address says after its "#": a span of time, a node, a job and a section. It can be sent to somebody else.

const RELATIVE = /^-(\d+(?:\.\d+)?)(s|min|h|d)$/;
const UNITS = { s: 1, min: 60, h: 3600, d: 86400 };

/** Seconds since 1970 of a time in an address; null of none. */
function moment(text) {
  if (/^-?\d+(\.\d+)?$/.test(text)) return Number(text);
  const parsed = Date.parse(text);
  return Number.isNaN(parsed) ? null : parsed / 1000;
}

/** {begin, end, last, node, job, section} of an address. */
export function read(hash) {
  const found = { begin: null, end: null, last: null, node: "", job: "", section: "" };
  for (const part of hash.replace(/^#/, "").split("&")) {
    const at = part.indexOf("=");
    if (at < 0) continue;
    let value;
    try { value = decodeURIComponent(part.slice(at + 1).replace(/\+/g, " ")); } catch (_error) { continue; }
    const name = part.slice(0, at);
    if (name === "t") {
      const [from, to] = value.split("..");
      const relative = RELATIVE.exec(from);
      if (relative) found.last = Number(relative[1]) * UNITS[relative[2]];
      else found.begin = moment(from);
      found.end = to === undefined || to === "now" || to === "" || relative ? null : moment(to);
    } else if (name in found && ["node", "job", "section"].includes(name)) {
      found[name] = value;
    }
  }
  if (found.begin !== null && found.end !== null && found.begin >= found.end) found.begin = found.end = null;
  return found;
}

function iso(seconds) {
  return new Date(1000 * seconds).toISOString().replace(/\.000Z$/, "Z");
}

export function spoken(seconds) {
  const unit = seconds % 86400 === 0 ? "d" : seconds % 3600 === 0 ? "h" : seconds % 60 === 0 ? "min" : "s";
  return `${seconds / UNITS[unit]}${unit}`;
}

/** The address of a view. */
export function write(view) {
  const parts = [];
  if (view.last) parts.push(`t=-${spoken(view.last)}..now`);
  else if (view.begin !== null) parts.push(`t=${iso(view.begin)}..${view.end === null ? "now" : iso(view.end)}`);
  for (const name of ["node", "job", "section"]) if (view[name]) parts.push(`${name}=${encodeURIComponent(view[name])}`);
  return `#${parts.join("&")}`;
}
