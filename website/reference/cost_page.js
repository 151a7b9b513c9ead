// The fields of the page, the fragment that keeps them, and what is shown of the results.
(() => {
  const root = document.getElementById("cost-calculator");
  const data = JSON.parse(document.getElementById("cost-data").textContent);
  const fields = new Map();
  const PARTS = {compute: "training", interruption: "saving, repeating", spares: "spare nodes", energy: "power", storage: "storage"};
  const make = (tag, given = {}, ...inner) => {
    const element = Object.assign(document.createElement(tag), given);
    element.append(...inner);
    return element;
  };
  const range = text => {
    if (!text.trim()) return null;
    const found = /^\s*([0-9.]+(?:e[-+]?[0-9]+)?)(?:\s*(?:to|\.\.|–)\s*([0-9.]+(?:e[-+]?[0-9]+)?))?\s*$/i.exec(text);
    const pair = found ? [Number(found[1]), Number(found[2] ?? found[1])] : [NaN, NaN];
    return pair[0] <= pair[1] ? pair : NaN;
  };

  function field(place, id, spec, value, about) {
    const key = spec.offer ? `${spec.offer}.${spec.name}` : spec.name;
    const input = make(spec.choices ? "select" : "input", {id, className: "cost-field"});
    if (spec.choices) input.append(...spec.choices.map(([name, text]) => make("option", {value: name, textContent: text})));
    else Object.assign(input, {type: "text", inputMode: spec.text ? "text" : "decimal", autocomplete: "off", spellcheck: false});
    input.value = value;
    const note = make("small", {id: `${id}-note`, textContent: about});
    input.setAttribute("aria-describedby", note.id);
    const row = make("div", {className: "cost-row"}, make("label", {htmlFor: id, textContent: spec.label}), input);
    if (spec.slide) {
      const slider = make("input", {type: "range", min: spec.slide[0], max: spec.slide[1], step: spec.slide[2]});
      slider.setAttribute("aria-label", `${spec.label}: slider`);
      const follow = () => { const now = range(input.value); if (now) slider.value = (now[0] + now[1]) / 2; };
      slider.addEventListener("input", () => { input.value = slider.value; changed(key); });
      input.addEventListener("input", follow);
      follow();
      row.append(slider);
      fields.set(key, {input, note, row, spec, initial: value, about, follow});
    } else fields.set(key, {input, note, row, spec, initial: value, about, follow() {}});
    row.append(note);
    input.addEventListener("input", () => changed(key));
    place.append(row);
  }

  function group(place, title, specs, values, prefix) {
    const box = make("fieldset", {className: "cost-group"}, make("legend", {textContent: title}));
    specs.forEach(spec => {
      const given = values[spec.name] ?? {};
      field(box, `${prefix}-${spec.name}`, spec, given.text ?? "", given.about ?? "");
    });
    place.append(box);
    return box;
  }

  function changed() {
    for (const {input, note, initial, about} of fields.values())
      note.textContent = input.value === initial ? about : about ? "your value" : "";
    for (const {row, spec} of fields.values())
      if (spec.of) row.hidden = fields.get(`${spec.offer}.terms`).input.value !== spec.of;
    const kept = new URLSearchParams();
    for (const [key, {input, initial}] of fields) if (input.value !== initial) kept.set(key, input.value);
    history.replaceState(null, "", kept.size ? `#${kept}` : location.pathname + location.search);
    show();
  }

  function restore() {
    const kept = new URLSearchParams(location.hash.slice(1));
    for (const [key, {input, initial, follow}] of fields) { input.value = kept.get(key) ?? initial; follow(); }
    changed();
  }

  // The values of a group of fields as the formulas take them; a Refusal for what is no number.
  function read(specs, offer = "") {
    const found = {};
    for (const spec of specs) {
      const {input} = fields.get(offer ? `${offer}.${spec.name}` : spec.name);
      const text = input.value;
      if (spec.choices || spec.text) { found[spec.name] = text; continue; }
      const value = range(text);
      const low = spec.least ?? 0;
      const bad = value !== null && (Number.isNaN(value) || value[0] < low || (spec.above && value[0] <= low) || value[1] > (spec.most ?? Infinity));
      if (bad) throw new Cost.Refusal(`${spec.label}: give a number, or two as 60 to 120${spec.most ? `, above 0 and up to ${spec.most}` : ""}.`);
      found[spec.name] = spec.single ? (value === null ? null : value[0]) : value;
    }
    return found;
  }

  const together = (values, names, what) => {
    const given = names.filter(name => values[name] != null);
    if (given.length && given.length < names.length) throw new Cost.Refusal(`${what}: give both values, or none.`);
    return given.length ? values : null;
  };

  function shared() {
    const job = read(data.fields.job);
    return {
      job: {...job, devices: job.devices ?? NaN},
      energy: together(read(data.fields.energy), ["price_per_kwh", "pue"], "Power"),
      storage: together(read(data.fields.storage), ["gib", "price_per_gib_month"], "Storage"),
      checkpoints: together(read(data.fields.checkpoints), ["stall_seconds", "restart_seconds"], "Checkpoints"),
    };
  }

  function offerOf(name) {
    const found = read(data.fields.offer, name);
    if (found.mfu && found.tokens_per_second_per_device) throw new Cost.Refusal("Give MFU or tokens per second, not both: one follows from the other.");
    for (const spec of data.fields.offer) if (spec.of && spec.of !== found.terms) found[spec.name] = null;
    return {...found, owned: found.terms === "own", spare_nodes: found.spare_nodes ?? 0};
  }

  const digits = (value, places) => value.toLocaleString("en-US", {minimumFractionDigits: places, maximumFractionDigits: places});
  const text = (pair, places = 0) => {
    const [low, high] = pair.map(value => digits(value, places));
    return low === high ? low : `${low} to ${high}`;
  };

  function results() {
    return data.offers.map(name => {
      try {
        const inputs = shared(), offer = offerOf(name);
        return {name, inputs, offer, found: Cost.estimate(inputs, offer, data)};
      } catch (error) {
        if (!(error instanceof Cost.Refusal)) throw error;
        return {name, refused: error.message};
      }
    });
  }

  function cheapest(every) {
    const good = every.filter(each => each.found).sort((a, b) => a.found.total[1] - b.found.total[1]);
    if (good.length < 2) return "";
    const [first, ...others] = good;
    return others.every(each => first.found.total[1] < each.found.total[0])
      ? `${first.name} is the cheapest, whatever the ranges turn out to be.`
      : "The ranges overlap: none is the cheapest for certain.";
  }

  function show() {
    const every = results(), unit = data.currency;
    root.dataset.results = JSON.stringify(every.map(({name, refused, found}) => ({name, refused, ...found})));
    const most = Math.max(1, ...every.filter(each => each.found).map(each => each.found.total[1]));
    document.getElementById("cost-says").textContent = cheapest(every);
    const rows = [
      [`Total, ${unit}`, each => text(each.total)],
      ["Per million tokens", each => text(each.per_million_tokens, 4)],
      ["Days", each => text(each.wall_hours.map(hours => hours / 24), 1)],
      ["Node-hours", each => text(each.node_hours)],
      ["Checkpoint every", each => each.interval_minutes ? `${text(each.interval_minutes)} min` : "not counted"],
      ["Energy", each => each.energy_kwh ? `${text(each.energy_kwh.map(kwh => kwh / 1000), 1)} MWh` : "not known"],
      ...Cost.COMPONENTS.map((name, at) => [PARTS[name], each => text(each.components[name]), at]),
    ];
    document.getElementById("cost-results").replaceChildren(...every.map(({name, refused, found}) => {
      const box = make("section", {className: "cost-result"}, make("h2", {textContent: name}));
      if (refused) { box.append(make("p", {className: "cost-refused", textContent: refused})); return box; }
      const bar = make("div", {className: "cost-bar"});
      bar.setAttribute("role", "img");
      bar.setAttribute("aria-label", `Total: ${text(found.total)} ${unit}; the bar shows the high end by part`);
      Cost.COMPONENTS.forEach((part, at) => {
        const share = make("span", {title: `${part}: ${text(found.components[part])} ${unit}`});
        share.style.width = `${100 * found.components[part][1] / most}%`;
        share.style.background = `var(--cost-${at})`;
        bar.append(share);
      });
      const list = make("dl");
      rows.forEach(([label, of, color]) => {
        const term = make("dt", {textContent: label});
        if (color !== undefined) {
          const swatch = make("i", {className: "cost-swatch"});
          swatch.style.background = `var(--cost-${color})`;
          term.prepend(swatch);
        }
        list.append(term, make("dd", {textContent: of(found)}));
      });
      box.append(bar, list);
      return box;
    }));
    document.getElementById("cost-file").textContent = asYaml(every);
  }

  // The same inputs as a file of `gaudi3-train cost`.
  function asYaml(every) {
    const today = new Date().toISOString().slice(0, 10);
    const line = (key, given) => {
      const {input, initial, about} = fields.get(key), pair = range(input.value);
      const known = input.value === initial && given;
      const source = known ? given.source : "set in the cost calculator", date = known ? given.date : today;
      return `{value: ${pair[0] === pair[1] ? pair[0] : `[${pair[0]}, ${pair[1]}]`}, source: ${JSON.stringify(source)}, date: ${date}}`;
    };
    const section = (title, specs, values, plain) => {
      const lines = specs.filter(spec => values[spec.name] != null).map(spec =>
        `  ${spec.name}: ${plain.includes(spec.name) ? values[spec.name] : line(spec.name, data.given[spec.name])}`);
      return [`${title}:`, ...lines];
    };
    const sound = every.find(each => each.found);
    if (!sound) return "";
    const {job, energy, storage, checkpoints} = sound.inputs;
    const lines = [`currency: ${data.currency}`, ...section("job", data.fields.job, job, Object.keys(job)), "offers:"];
    for (const {name, offer, found} of every.filter(each => each.found)) {
      lines.push(`  ${name}:`, `    platform: ${offer.platform}`, `    spare_nodes: ${offer.spare_nodes}`);
      for (const spec of data.fields.offer) {
        if (["platform", "terms", "spare_nodes"].includes(spec.name) || offer[spec.name] == null) continue;
        lines.push(`    ${spec.name}: ${line(`${name}.${spec.name}`, data.given[`${name}.${spec.name}`])}`);
      }
    }
    if (energy) lines.push(...section("energy", data.fields.energy, energy, []));
    if (storage) lines.push(...section("storage", data.fields.storage, storage, []));
    if (checkpoints) lines.push(...section("checkpoints", data.fields.checkpoints, checkpoints, ["interval_minutes"]));
    return lines.join("\n") + "\n";
  }

  const of = name => Object.fromEntries(Object.entries(data.values).filter(([key]) => key.startsWith(name)).map(([key, value]) => [key.slice(name.length), value]));
  const places = {job: document.getElementById("cost-job"), offers: document.getElementById("cost-offers"), more: document.getElementById("cost-more")};
  group(places.job, "Job", data.fields.job, of(""), "cost");
  data.offers.forEach((name, at) => group(places.offers, name, data.fields.offer.map(spec => ({...spec, offer: name})), of(`${name}.`), `cost-offer${at}`));
  group(places.more, "Checkpoints and restarts", data.fields.checkpoints, of(""), "cost");
  group(places.more, "Power of own nodes", data.fields.energy, of(""), "cost");
  group(places.more, "Storage", data.fields.storage, of(""), "cost");
  document.getElementById("cost-reset").addEventListener("click", () => { location.hash = ""; restore(); });
  addEventListener("hashchange", restore);
  restore();
})();
