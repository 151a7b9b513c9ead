"""The calculator computes what `gaudi3-train cost` does, asks for nothing, and keeps its inputs in its address."""

from __future__ import annotations

import json
import math
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "watch/tests"))  # which are no package

import browser  # noqa: E402

from gaudi3_scale.cost import CostAnalyzer  # noqa: E402
from gaudi3_scale.cost.estimates import Estimates  # noqa: E402
from gaudi3_scale.cost.inputs import Energy, Inputs, Offer, Storage, Workload, load  # noqa: E402
from gaudi3_scale.cost.model import Estimate  # noqa: E402
from website.reference import calculator  # noqa: E402

CASES = 30
OFFERS = ("gaudi3", "gaudi3-owned", "h100")
SHELL = '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Cost</title></head><body><h1>Cost</h1>'


def given(pair: list[float]) -> dict[str, Any]:
    return {"value": pair, "source": "a test", "date": "2026-11-23"}


def a_case(seed: int) -> tuple[dict[str, Any], dict[str, str]]:
    """Inputs at random: as the analyzer takes them, and as the page's fields."""
    draw = random.Random(seed)
    typed: dict[str, str] = {}

    def pair(key: str, low: float, high: float) -> dict[str, Any]:
        ends = sorted(math.exp(draw.uniform(math.log(low), math.log(high))) for _end in range(2))
        ends = ends if draw.random() < 0.7 else [ends[0]] * 2
        typed[key] = repr(ends[0]) if ends[0] == ends[1] else f"{ends[0]!r} to {ends[1]!r}"
        return given(ends)

    job = {
        "model_size": draw.choice(["7B", "1.5T", "llama-3.1-8b", "llama-3.1-70b", "70000000000"]),
        "dataset_tokens": draw.choice(["1T", "300B", "2.5e12"]),
        "devices": 8 * draw.randint(1, 400),
        "precision": "bfloat16",
    }
    typed |= {name: str(value) for name, value in job.items()}
    inputs: dict[str, Any] = {"job": job, "offers": {}}
    with_checkpoints = draw.random() < 0.8
    for name in OFFERS:
        offer: dict[str, Any] = {"platform": draw.choice(["gaudi3", "gaudi2", "h100", "a100"])}
        owned = draw.random() < 0.5
        typed |= {f"{name}.platform": offer["platform"], f"{name}.terms": "own" if owned else "rent"}
        wanted: list[tuple[str, float, float]] = [("host_watts", 500, 3000), ("device_watts", 300, 900)]
        if owned:
            wanted += [("node_purchase_price", 1e5, 1e6), ("amortisation_years", 2, 6), ("utilisation", 0.1, 1)]
            wanted += [("node_upkeep_per_year", 1e3, 1e5)]
        else:
            wanted += [("node_price_per_hour", 5, 200)]
        fast = draw.random() < 0.3
        wanted += [("tokens_per_second_per_device", 100, 5000)] if fast else [("mfu", 0.1, 0.7)]
        if with_checkpoints and draw.random() < 0.8:
            wanted += [("interruptions_per_node_day", 1e-5, 5e-3)]
        others = ("mfu", "tokens_per_second_per_device", "interruptions_per_node_day")
        typed |= {f"{name}.{each}": "" for each in others}
        for each, low, high in wanted:
            offer[each] = pair(f"{name}.{each}", low, high)
        offer["spare_nodes"] = draw.randint(0, 3)
        typed[f"{name}.spare_nodes"] = str(offer["spare_nodes"])
        inputs["offers"][name] = offer
    inputs["energy"] = {"price_per_kwh": pair("price_per_kwh", 0.05, 0.4), "pue": pair("pue", 1.0, 1.8)}
    typed |= dict.fromkeys(("gib", "price_per_gib_month", "stall_seconds", "restart_seconds"), "")
    if draw.random() < 0.7:
        inputs["storage"] = {
            "gib": pair("gib", 100, 1e5),
            "price_per_gib_month": pair("price_per_gib_month", 0.01, 0.1),
        }
    if with_checkpoints:
        stall, restart = pair("stall_seconds", 1, 120), pair("restart_seconds", 60, 1200)
        inputs["checkpoints"] = {"stall_seconds": stall, "restart_seconds": restart}
        if draw.random() < 0.4:
            inputs["checkpoints"]["interval_minutes"] = float(draw.randint(5, 120))
            typed["interval_minutes"] = str(inputs["checkpoints"]["interval_minutes"])
    return inputs, typed


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[browser.Tab]:
    if browser.program() is None:
        pytest.skip(browser.MISSING)
    page = calculator.page()
    file = tmp_path_factory.mktemp("page") / "calculator.html"
    file.write_text(SHELL + page[page.index("<style>") : page.index("## Next")], encoding="utf-8")
    with browser.started() as started:
        opened = started.tab(file.as_uri(), 390, 844)
        opened.wait("document.readyState === 'complete' && Boolean(document.querySelector('.cost-result'))")
        yield opened


def typed_in(tab: browser.Tab, typed: dict[str, str]) -> list[dict[str, Any]]:
    """The page's results for these fields."""
    address = json.dumps(f"#{urlencode(typed)}")
    tab.ask(f"history.replaceState(null, '', {address}), dispatchEvent(new Event('hashchange'))")
    found: list[dict[str, Any]] = json.loads(tab.ask("document.getElementById('cost-calculator').dataset.results"))
    return found


def numbers(estimate: Estimate) -> dict[str, list[float] | None]:
    """An estimate by the page's names."""
    named = {
        name: getattr(estimate, name)
        for name in (
            "device_hours",
            "wall_hours",
            "node_hours",
            "energy_kwh",
            "interval_minutes",
            "total",
            "per_million_tokens",
        )
    }
    return {
        name: None if each is None else [each.low, each.high] for name, each in {**named, **estimate.components}.items()
    }


def same(found: dict[str, Any], estimate: Estimate) -> None:
    flat = {**found, **found["components"]}
    for name, wanted in numbers(estimate).items():
        if wanted is None:
            assert flat[name] is None, name
        else:
            assert flat[name] == pytest.approx(wanted, rel=1e-6, abs=1e-6), name


@pytest.mark.parametrize("seed", range(CASES))
def test_it_computes_what_the_command_computes(tab: browser.Tab, seed: int) -> None:
    inputs, typed = a_case(seed)
    compared: Estimates = CostAnalyzer(inputs).compare_training_cost()
    found = typed_in(tab, typed)
    assert [each["name"] for each in found] == [each.offer for each in compared.estimates]
    assert not [each["refused"] for each in found if "refused" in each]
    for page, estimate in zip(found, compared.estimates, strict=True):
        same(page, estimate)
    file = yaml.safe_load(tab.ask("document.getElementById('cost-file').textContent"))
    again = CostAnalyzer(file).compare_training_cost()
    for page, estimate in zip(found, again.estimates, strict=True):
        same(page, estimate)


def test_it_begins_with_the_example_and_says_where_each_value_is_from(tab: browser.Tab) -> None:
    for page, estimate in zip(
        typed_in(tab, {}), CostAnalyzer(calculator.EXAMPLE).compare_training_cost().estimates, strict=True
    ):
        same(page, estimate)
    file = yaml.safe_load(tab.ask("document.getElementById('cost-file').textContent"))
    example = yaml.safe_load(calculator.EXAMPLE.read_text(encoding="utf-8"))
    for name, offer in example["offers"].items():
        offer.setdefault("platform", name)
    assert load(file | {"note": example["note"]}) == load(example)
    unsaid = tab.ask(
        "[...document.querySelectorAll('.cost-row:not([hidden])')].filter(row => {"
        " const input = row.querySelector('.cost-field'), note = row.querySelector('small').textContent;"
        " return /price|watts|mfu|upkeep|utilisation/.test(input.id) && input.value && !/2026-/.test(note) })"
        ".map(row => row.textContent)"
    )
    assert unsaid == []


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ({"devices": "12"}, "Cards: give a multiple of 8"),
        ({"model_size": "big"}, "Model size: give a number above 0"),
        ({"gaudi3.mfu": ""}, "MFU is missing, and none is built in."),
        ({"gaudi3.mfu": "1.2"}, "MFU (share of the dense peak): give a number"),
        ({"gaudi3.node_price_per_hour": "90 to 60"}, "price per node and hour: give a number"),
        ({"gaudi3.tokens_per_second_per_device": "900"}, "Give MFU or tokens per second, not both"),
        ({"gaudi3.platform": "gaudi2", "precision": "float8"}, "No dense peak for float8 is known"),
        ({"stall_seconds": "", "restart_seconds": ""}, "Interruptions need the seconds"),
        ({"restart_seconds": ""}, "Checkpoints: give both values, or none."),
        ({"gaudi3.interruptions_per_node_day": "5000"}, "the job never ends"),
    ],
)
def test_a_value_that_cannot_be_is_one_sentence(tab: browser.Tab, typed: dict[str, str], sentence: str) -> None:
    found = typed_in(tab, typed)
    assert sentence in found[0]["refused"]
    assert sentence in tab.ask("document.querySelector('.cost-refused').textContent")


def test_its_address_is_what_was_changed_and_its_fields_have_labels(tab: browser.Tab) -> None:
    typed_in(tab, {"devices": "64"})
    slider = "document.querySelector('#cost-job input[type=range]')"
    tab.ask(f"{slider}.value = 128; {slider}.dispatchEvent(new Event('input'))")
    assert tab.ask("location.hash") == "#devices=128"
    assert json.loads(tab.ask("document.getElementById('cost-calculator').dataset.results"))[0]["node_hours"]
    nameless = (
        "[...document.querySelectorAll('#cost-calculator :is(input, select)')]"
        ".filter(each => !each.labels.length && !each.getAttribute('aria-label')).map(each => each.outerHTML)"
    )
    assert tab.ask(nameless) == []
    assert tab.ask("document.documentElement.scrollWidth <= innerWidth") is True
    tab.ask("document.getElementById('cost-reset').click()")
    assert tab.ask("location.hash") == ""


def test_it_asks_for_nothing_and_complains_of_nothing(tab: browser.Tab) -> None:
    typed_in(tab, {"devices": "64"})
    assert tab.complaints() == []
    assert {each for each in tab.requests() if not each.startswith("file://")} == set()


def test_every_input_of_the_command_has_a_field() -> None:
    """But readings of a sensor, an offer's own precision, and what is the whole file's."""
    named = {each["name"] for fields in calculator.FIELDS.values() for each in fields}
    kept = {"device_watts_readings", "precision"}
    for model in (Workload, Offer, Energy, Storage):
        assert set(model.model_fields) - kept <= named
    assert set(Inputs.model_fields) == {"currency", "note", "job", "offers", "energy", "storage", "checkpoints"}
