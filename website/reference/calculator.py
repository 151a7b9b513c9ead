"""The page that computes in the browser what `gaudi3-train cost` computes, from inputs that one can move.

The formulas are in `cost_calculator.js`; what is known of platforms, and the values that the page begins with, come
from the trainer and from `examples/cost/inputs.yml`, which has a source and a date for each.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from website.reference.text import ROOT, document

TITLE = "Cost calculator"
EXAMPLE = ROOT / "examples/cost/inputs.yml"
FOLDER = Path(__file__).parent
#: What the fields are, by section: name in the inputs, label, and what they take.
FIELDS: dict[str, list[dict[str, Any]]] = {
    "job": [
        {"name": "model_size", "label": "Model size", "text": True},
        {"name": "dataset_tokens", "label": "Tokens", "text": True},
        {"name": "devices", "label": "Cards at work", "single": True, "slide": [8, 4096, 8]},
        {
            "name": "precision",
            "label": "Precision",
            "choices": [[each, each] for each in ("bfloat16", "float8", "float32")],
        },
    ],
    "offer": [
        {"name": "platform", "label": "Platform", "choices": []},
        {"name": "terms", "label": "Terms", "choices": [["rent", "rented"], ["own", "owned"]]},
        {
            "name": "node_price_per_hour",
            "label": "Rented: price per node and hour",
            "above": True,
            "of": "rent",
            "slide": [1, 200, 1],
        },
        {"name": "node_purchase_price", "label": "Owned: purchase price of a node", "above": True, "of": "own"},
        {"name": "amortisation_years", "label": "Owned: years until written off", "above": True, "of": "own"},
        {"name": "utilisation", "label": "Owned: share of hours in use", "above": True, "most": 1, "of": "own"},
        {"name": "node_upkeep_per_year", "label": "Owned: upkeep per node and year", "of": "own"},
        {"name": "mfu", "label": "MFU (share of the dense peak)", "above": True, "most": 1, "slide": [0.05, 0.7, 0.01]},
        {"name": "tokens_per_second_per_device", "label": "Instead of MFU: tokens per second and card", "above": True},
        {"name": "device_watts", "label": "Mean power of a card, W"},
        {"name": "host_watts", "label": "Mean power of the rest of a node, W"},
        {"name": "interruptions_per_node_day", "label": "Interruptions per node and day"},
        {"name": "spare_nodes", "label": "Spare nodes", "single": True},
    ],
    "checkpoints": [
        {"name": "stall_seconds", "label": "Training stands still for a checkpoint, seconds"},
        {"name": "restart_seconds", "label": "From an interruption to the next step, seconds"},
        {
            "name": "interval_minutes",
            "label": "Minutes between checkpoints (empty: the best)",
            "single": True,
            "above": True,
        },
    ],
    "energy": [
        {"name": "price_per_kwh", "label": "Price per kWh"},
        {"name": "pue", "label": "PUE of the site", "least": 1},
    ],
    "storage": [
        {"name": "gib", "label": "GiB kept"},
        {"name": "price_per_gib_month", "label": "Price per GiB and month"},
    ],
}
BODY = """<div id="cost-calculator">
<noscript>This page computes with JavaScript, in your browser. Without it, use the command gaudi3-train cost.</noscript>
<div id="cost-job"></div>
<div id="cost-results" class="cost-columns"></div>
<p id="cost-says" aria-live="polite"></p>
<div id="cost-offers" class="cost-columns"></div>
<div id="cost-more" class="cost-columns"></div>
<p><button id="cost-reset" type="button">Back to the example's values</button></p>
<details><summary>The same as a file for gaudi3-train cost</summary><pre id="cost-file" tabindex="0"></pre></details>
</div>"""


def data() -> dict[str, Any]:
    """What the page knows: platforms with their peaks, models, the fields, and the example's values with sources."""
    from gaudi3_scale.cost.inputs import load
    from gaudi3_scale.cost.platforms import PLATFORMS
    from gaudi3_scale.cost.values import Given
    from gaudi3_scale.cost.workload import MODELS
    from gaudi3_scale.throughput.peaks import PEAKS

    inputs = load(EXAMPLE)
    fields = json.loads(json.dumps(FIELDS))
    fields["offer"][0]["choices"] = [[name, name] for name in PLATFORMS]
    sections = {"": inputs.job, "energy": inputs.energy, "storage": inputs.storage, "checkpoints": inputs.checkpoints}
    values: dict[str, dict[str, str]] = {}
    given: dict[str, dict[str, str]] = {}

    def put(key: str, value: object) -> None:
        if isinstance(value, Given):
            values[key] = {"text": _range(value), "about": f"{value.source}, {value.date}"}
            given[key] = {"source": value.source, "date": str(value.date)}
        elif value is not None:
            values[key] = {"text": str(value), "about": ""}

    for section in sections.values():
        for name in type(section).model_fields if section is not None else ():
            put(name, getattr(section, name))
    for offer, terms in inputs.offers.items():
        for spec in fields["offer"]:
            put(f"{offer}.{spec['name']}", getattr(terms, spec["name"], None))
        values[f"{offer}.platform"] = {"text": inputs.platform(offer), "about": ""}
        values[f"{offer}.terms"] = {"text": "own" if terms.node_purchase_price else "rent", "about": ""}
        watts = PLATFORMS[inputs.platform(offer)].device_watts
        if terms.device_watts is None and watts is not None:
            about = f"empty: the limit of {watts.high:g} W ({watts.source}, {watts.date})"
            values[f"{offer}.device_watts"] = {"text": "", "about": about}
    return {
        "currency": inputs.currency,
        "offers": list(inputs.offers),
        "fields": fields,
        "values": values,
        "given": given,
        "models": MODELS,
        "platforms": {
            name: {
                "devices_per_node": each.devices_per_node,
                "peaks": PEAKS[each.device].flops,
                "device_watts": None if each.device_watts is None else list(each.device_watts.value),
            }
            for name, each in PLATFORMS.items()
        },
    }


def _range(value: Any) -> str:
    low, high = (f"{each:.10g}" for each in value.value)
    return low if low == high else f"{low} to {high}"


def page() -> str:
    """The page."""
    known = json.dumps(data(), separators=(",", ":")).replace("</", "<\\/")
    scripts = [(FOLDER / name).read_text(encoding="utf-8") for name in ("cost_calculator.js", "cost_page.js")]
    return document(
        f"# {TITLE}",
        "What a training would cost on several platforms, for whoever compares offers. Move the inputs: the results "
        "follow, with the formulas of [`gaudi3-train cost`](../use/cost.md). Everything is computed in your browser, "
        "and nothing is sent. A value is a number, or a range such as `60 to 120`; each result is a range, too. **No "
        "price and no MFU is built in:** the page begins with the round numbers of `examples/cost/inputs.yml`, which "
        "are nobody's offer and nobody's measurement. Put your own in their place. The address keeps what you "
        "changed, so you can share it.",
        f"<style>\n{(FOLDER / 'cost_page.css').read_text(encoding='utf-8').strip()}\n</style>",
        BODY,
        f'<script type="application/json" id="cost-data">{known}</script>',
        *(f"<script>\n{each.strip()}\n</script>" for each in scripts),
        "## Next",
        "- [What a training costs](../use/cost.md): formulas, what is built in, the bill of a running job\n"
        "- [Machine types](instances.md): which clouds have Gaudi",
    )
