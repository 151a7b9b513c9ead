// The formulas of `gaudi3-train cost` (trainer/src/gaudi3_scale/cost), and the page around them. No request, no dependency.
"use strict";
const Cost = (() => {
  const HOURS_PER_YEAR = 8766, HOURS_PER_MONTH = 730.5;
  const COMPONENTS = ["compute", "interruption", "spares", "energy", "storage"];
  const SUFFIXES = {"": 1, K: 1e3, M: 1e6, B: 1e9, T: 1e12};
  class Refusal extends Error {}

  // One end of every input: the one that makes a result small, or the one that makes it large.
  const pick = expensive => ({
    more: range => range[expensive ? 1 : 0],
    less: range => range[expensive ? 0 : 1],
  });

  function count(text, what) {
    const found = /^([0-9]+(?:\.[0-9]+)?(?:[eE][0-9]+)?) *([KMBT]?)$/i.exec(String(text).trim());
    const value = found ? Number(found[1]) * SUFFIXES[found[2].toUpperCase()] : 0;
    if (!(value > 0 && value < Infinity)) throw new Refusal(`${what}: give a number above 0, with K, M, B or T, as 70B.`);
    return value;
  }

  function parameters(model, data) {
    return data.models[String(model).toLowerCase()] ?? count(model, "Model size");
  }

  function needed(given, name) {
    if (given == null) throw new Refusal(`${name} is missing, and none is built in.`);
    return given;
  }

  function deviceHours(inputs, offer, end, data) {
    const tokens = count(inputs.job.dataset_tokens, "Tokens");
    if (offer.tokens_per_second_per_device) return tokens / end.less(offer.tokens_per_second_per_device) / 3600;
    const mfu = end.less(needed(offer.mfu, "MFU"));
    const peak = data.platforms[offer.platform].peaks[inputs.job.precision];
    if (!peak) throw new Refusal(`No dense peak for ${inputs.job.precision} is known: give tokens per second instead of MFU.`);
    return 6 * parameters(inputs.job.model_size, data) * tokens / (peak * mfu) / 3600;
  }

  function optimalInterval(stall, mean) {
    if (mean === Infinity) return Infinity;
    if (!stall) return 1;
    let low = 0, high = 1;
    for (let turn = 0; turn < 60; turn++) {
      const middle = (low + high) / 2;
      if (1 - middle > Math.exp(-middle - stall / mean)) low = middle; else high = middle;
    }
    return low * mean;
  }

  function expectedSeconds(work, interval, stall, restart, mean) {
    const segments = work / interval;
    if (mean === Infinity) return work + segments * stall;
    return mean * Math.exp(restart / mean) * Math.expm1((interval + stall) / mean) * segments;
  }

  function time(inputs, offer, end, data) {
    const {job, checkpoints} = inputs, perNode = data.platforms[offer.platform].devices_per_node;
    if (!(Number.isInteger(job.devices) && job.devices > 0) || job.devices % perNode)
      throw new Refusal(`Cards: give a multiple of ${perNode}, the cards of a node.`);
    const nodes = job.devices / perNode, work = deviceHours(inputs, offer, end, data) / job.devices;
    const rate = offer.interruptions_per_node_day;
    const plain = {work, wall: work, nodes, spares: offer.spare_nodes, interval: null};
    if (!checkpoints) {
      if (rate) throw new Refusal("Interruptions need the seconds that a checkpoint and a restart take.");
      return plain;
    }
    if (!rate && checkpoints.interval_minutes == null) return plain;
    const failures = nodes * (rate ? end.more(rate) : 0) / 86400, mean = failures ? 1 / failures : Infinity;
    const stall = end.more(checkpoints.stall_seconds), restart = end.more(checkpoints.restart_seconds);
    const interval = checkpoints.interval_minutes != null ? checkpoints.interval_minutes * 60 : optimalInterval(stall, mean);
    const wall = expectedSeconds(work * 3600, interval, stall, restart, mean) / 3600;
    if (!(wall <= 1000 * work + 1000)) throw new Refusal("With that many interruptions the job never ends: give fewer of them, fewer cards or a shorter restart.");
    return {...plain, wall, interval: Number.isFinite(interval) ? interval / 60 : null};
  }

  function nodeHour(offer, end) {
    if (!offer.owned) return end.more(needed(offer.node_price_per_hour, "Price per node and hour"));
    const years = end.less(needed(offer.amortisation_years, "Years of write-off"));
    const used = end.less(needed(offer.utilisation, "Share of hours in use")) * HOURS_PER_YEAR;
    const upkeep = end.more(needed(offer.node_upkeep_per_year, "Upkeep per node and year"));
    return (end.more(needed(offer.node_purchase_price, "Purchase price of a node")) / years + upkeep) / used;
  }

  function energyKwh(inputs, offer, taken, end, data) {
    const platform = data.platforms[offer.platform], watts = offer.device_watts ?? platform.device_watts;
    if (watts == null) return null;
    const host = offer.host_watts ? end.more(offer.host_watts) : 0, pue = inputs.energy ? end.more(inputs.energy.pue) : 1;
    const node = platform.devices_per_node * end.more(watts) + host;
    return taken.wall * (taken.nodes + taken.spares) * node / 1000 * pue;
  }

  function money(inputs, offer, taken, end, data) {
    const rate = nodeHour(offer, end), found = {
      compute: taken.work * taken.nodes * rate,
      interruption: (taken.wall - taken.work) * taken.nodes * rate,
      spares: taken.wall * taken.spares * rate,
      energy: 0,
      storage: 0,
    };
    if (offer.owned) {
      if (!inputs.energy) throw new Refusal("The power of own nodes is paid for apart: give its price and the PUE.");
      needed(offer.host_watts, "Power of the rest of a node");
      found.energy = needed(energyKwh(inputs, offer, taken, end, data), "Power of a card") * end.more(inputs.energy.price_per_kwh);
    }
    if (inputs.storage)
      found.storage = end.more(inputs.storage.gib) * end.more(inputs.storage.price_per_gib_month) * taken.wall / HOURS_PER_MONTH;
    return found;
  }

  // Everything of one offer, each as [low, high]. Throws a Refusal with a sentence where an input is missing.
  function estimate(inputs, offer, data) {
    const ends = [pick(false), pick(true)];
    const times = ends.map(end => time(inputs, offer, end, data));
    const parts = ends.map((end, at) => money(inputs, offer, times[at], end, data));
    const totals = parts.map(part => COMPONENTS.reduce((sum, name) => sum + part[name], 0));
    const tokens = count(inputs.job.dataset_tokens, "Tokens"), intervals = times.map(each => each.interval).filter(each => each != null);
    const kwh = ends.map((end, at) => energyKwh(inputs, offer, times[at], end, data));
    return {
      device_hours: ends.map(end => deviceHours(inputs, offer, end, data)),
      wall_hours: times.map(each => each.wall),
      node_hours: times.map(each => each.wall * (each.nodes + each.spares)),
      energy_kwh: kwh[0] == null ? null : kwh,
      interval_minutes: intervals.length ? [Math.min(...intervals), Math.max(...intervals)] : null,
      components: Object.fromEntries(COMPONENTS.map(name => [name, parts.map(part => part[name])])),
      total: totals,
      per_million_tokens: totals.map(total => 1e6 * total / tokens),
    };
  }

  return {COMPONENTS, Refusal, estimate};
})();
