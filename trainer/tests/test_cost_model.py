"""Estimates of cost: the formulas, the direction of every input, and what is said where one is missing."""

from __future__ import annotations

import copy
import math
import random
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from gaudi3_scale.config.shapes import SHAPES
from gaudi3_scale.cost import CostAnalyzer
from gaudi3_scale.cost.checkpoint_interval import (
    daly_interval_seconds,
    expected_seconds,
    optimal_interval_seconds,
    young_interval_seconds,
)
from gaudi3_scale.cost.energy import screen
from gaudi3_scale.cost.inputs import Checkpoints, Energy, Inputs, Offer, Storage, load
from gaudi3_scale.cost.model import estimate
from gaudi3_scale.cost.platforms import PLATFORMS
from gaudi3_scale.cost.values import Given
from gaudi3_scale.cost.workload import MODELS, parameters, training_flops
from gaudi3_scale.errors import ConfigError

MINUTE, HOUR = 60.0, 3600.0
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "cost" / "inputs.yml"


def given(value: float | list[float]) -> dict[str, Any]:
    return {"value": value, "source": "a test", "date": "2026-11-23"}


def rented(**more: Any) -> dict[str, Any]:
    return {"node_price_per_hour": given(80), "mfu": given(0.4), **more}


# Operations and intervals.


@pytest.mark.parametrize("model", sorted(MODELS))
def test_a_model_by_name_has_the_parameters_of_its_published_shape(model: str) -> None:
    """Each is used once as a matrix, so that a token takes six operations of it."""
    shape = SHAPES[model]
    hidden, inner, layers = shape["hidden_size"], shape["intermediate_size"], shape["num_hidden_layers"]
    heads = shape["num_key_value_heads"] / shape["num_attention_heads"]
    layer = 2 * hidden**2 * (1 + heads) + 3 * hidden * inner + 2 * hidden
    counted = layers * layer + 2 * shape["vocab_size"] * hidden + hidden
    assert parameters(model) == counted
    assert training_flops(parameters(model), 1e12) == 6e12 * counted


@pytest.mark.parametrize("mean_hours", [24, 6, 0.25])
def test_the_formulas_of_daly_and_young_are_near_the_best_interval(mean_hours: float) -> None:
    stall, mean = 5 * MINUTE, mean_hours * HOUR
    found, best = daly_interval_seconds(stall, mean), optimal_interval_seconds(stall, mean)
    assert best == pytest.approx(found, rel=0.005)
    assert young_interval_seconds(stall, mean) >= found
    least = expected_seconds(HOUR, best, stall, 0, mean)
    assert all(expected_seconds(HOUR, factor * best, stall, 0, mean) > least for factor in (0.9, 1.1))


def simulated(work: float, interval: float, stall: float, restart: float, mean: float, seed: int) -> float:
    """Seconds of a job that is interrupted at random."""
    draw = random.Random(seed)
    wall, done = 0.0, 0.0
    failure = draw.expovariate(1 / mean)
    while done < work:
        wanted = min(interval, work - done) + stall
        while wall + wanted > failure:
            wall = failure
            failure = wall + draw.expovariate(1 / mean)
            while wall + restart > failure:
                wall = failure
                failure = wall + draw.expovariate(1 / mean)
            wall += restart
        wall += wanted
        done += wanted - stall
    return wall


@pytest.mark.parametrize("mean_hours", [2.0, 6.0, 24.0])
def test_the_expected_time_is_that_of_a_simulation(mean_hours: float) -> None:
    work, stall, restart, mean = 200 * HOUR, 5 * MINUTE, 10 * MINUTE, mean_hours * HOUR
    best = optimal_interval_seconds(stall, mean)
    means = {}
    for factor in (0.4, 1.0, 2.5):
        runs = [simulated(work, factor * best, stall, restart, mean, seed) for seed in range(60)]
        means[factor] = sum(runs) / len(runs)
        assert expected_seconds(work, factor * best, stall, restart, mean) == pytest.approx(means[factor], rel=0.05)
    assert means[1.0] < min(means[0.4], means[2.5])
    young = young_interval_seconds(stall, mean)
    assert expected_seconds(work, young, stall, restart, mean) == pytest.approx(means[1.0], rel=0.05)


# The direction of every input.

RISES = {
    "node_price_per_hour", "node_purchase_price", "node_upkeep_per_year", "device_watts", "host_watts",
    "interruptions_per_node_day", "price_per_kwh", "pue", "gib", "price_per_gib_month", "stall_seconds",
    "restart_seconds",
}  # fmt: skip
FALLS = {"amortisation_years", "utilisation", "mfu", "tokens_per_second_per_device"}
SHARES = {"utilisation", "mfu"}


def a_case(draw: random.Random, owned: bool, measured: bool) -> dict[str, Any]:
    """Inputs at random, each with a range."""

    def pair(low: float, high: float) -> dict[str, Any]:
        first, second = sorted(math.exp(draw.uniform(math.log(low), math.log(high))) for _ in range(2))
        return given([first, second])

    offer = {
        "platform": draw.choice(sorted(PLATFORMS)),
        "interruptions_per_node_day": pair(1e-4, 0.02),
        "device_watts": pair(200, 900),
        "host_watts": pair(500, 3000),
        "spare_nodes": draw.randrange(4),
    }
    offer |= {"tokens_per_second_per_device": pair(50, 5000)} if measured else {"mfu": pair(0.1, 0.6)}
    if owned:
        offer |= {"node_purchase_price": pair(1e5, 6e5), "amortisation_years": pair(2, 7)}
        offer |= {"utilisation": pair(0.2, 0.95), "node_upkeep_per_year": pair(1e3, 1e5)}
    else:
        offer |= {"node_price_per_hour": pair(5, 200)}
    return {
        "job": {"model_size": "8B", "dataset_tokens": "200B", "devices": draw.choice((8, 64, 512))},
        "offers": {"it": offer},
        "energy": {"price_per_kwh": pair(0.02, 0.5), "pue": given([1.0 + draw.random() / 2, 1.6])},
        "storage": {"gib": pair(10, 1e5), "price_per_gib_month": pair(0.005, 0.2)},
        "checkpoints": {"stall_seconds": pair(1, 300), "restart_seconds": pair(10, 1800)},
    }


@pytest.mark.parametrize("seed", range(40))
def test_the_cost_moves_in_the_right_direction_for_every_input(seed: int) -> None:
    draw = random.Random(seed)
    owned, measured = bool(seed % 2), bool(seed // 2 % 2)
    case = a_case(draw, owned, measured)
    before = estimate(load(case), "it").total
    assert 0 < before.low <= before.high < math.inf
    moved = set()
    for section, values in (
        ("offers", case["offers"]["it"]),
        *((k, case[k]) for k in ("energy", "storage", "checkpoints")),
    ):
        for name, value in values.items():
            if not isinstance(value, dict):
                continue
            other = copy.deepcopy(case)
            target = other["offers"]["it"] if section == "offers" else other[section]
            factor = 1.01 if name in SHARES | {"pue"} else draw.uniform(1.05, 1.5)
            target[name]["value"] = [factor * end for end in value["value"]]
            after = estimate(load(other), "it").total
            counts = owned or (name not in ("device_watts", "host_watts", "price_per_kwh", "pue"))
            if not counts:
                assert (after.low, after.high) == (before.low, before.high), name
            elif name in RISES:
                assert after.low > before.low and after.high > before.high, name
            else:
                assert name in FALLS and after.low < before.low and after.high < before.high, name
            moved.add(name)
    assert len(moved) >= 11
    for key, value in (("dataset_tokens", "300B"), ("model_size", "9B")):
        if key == "model_size" and measured:
            continue  # the measured speed is that of the model
        larger = estimate(load({**case, "job": {**case["job"], key: value}}), "it").total
        assert larger.low > before.low and larger.high > before.high


@pytest.mark.parametrize("seed", range(10))
def test_no_combination_of_inputs_lies_outside_the_range(seed: int) -> None:
    draw = random.Random(seed)
    case = a_case(draw, owned=bool(seed % 2), measured=False)
    whole = estimate(load(case), "it").total
    for _ in range(20):
        exact = copy.deepcopy(case)
        for values in (exact["offers"]["it"], exact["energy"], exact["storage"], exact["checkpoints"]):
            for value in values.values():
                if isinstance(value, dict):
                    value["value"] = draw.uniform(*value["value"])
        found = estimate(load(exact), "it").total
        assert found.low == found.high
        assert whole.low * (1 - 1e-9) <= found.low <= whole.high * (1 + 1e-9)


def test_more_devices_are_interrupted_more_often_and_take_less_time() -> None:
    case = a_case(random.Random(5), owned=False, measured=False)
    found = [estimate(load({**case, "job": {**case["job"], "devices": n}}), "it") for n in (64, 512)]
    spare = case["offers"]["it"]["spare_nodes"]
    assert found[1].wall_hours.high < found[0].wall_hours.low or spare
    assert found[1].components["interruption"].high > found[0].components["interruption"].high


# The numbers of one case, computed by hand.


def test_a_rented_and_an_owned_node() -> None:
    inputs = {
        "job": {"model_size": 1e9, "dataset_tokens": 1e12, "devices": 16},
        "offers": {
            "gaudi3": rented(spare_nodes=1),
            "own": {
                "platform": "gaudi3",
                "mfu": given(0.4),
                "node_purchase_price": given(300_000),
                "amortisation_years": given(5),
                "utilisation": given(0.5),
                "node_upkeep_per_year": given(10_000),
                "host_watts": given(1000),
            },
        },
        "energy": {"price_per_kwh": given(0.2), "pue": given(1.5)},
        "storage": {"gib": given(7305), "price_per_gib_month": given(0.1)},
    }
    hours = 6e21 / (1835e12 * 0.4) / 3600 / 16
    found = estimate(load(inputs), "gaudi3")
    assert found.wall_hours.low == pytest.approx(hours) == found.wall_hours.high
    assert found.components["compute"].low == pytest.approx(hours * 2 * 80)
    assert found.components["spares"].low == pytest.approx(hours * 80)
    assert found.components["energy"].low == 0  # it is in the rent
    assert found.components["storage"].low == pytest.approx(hours)
    assert found.energy_kwh is not None
    assert found.energy_kwh.low == pytest.approx(hours * 3 * 7.2 * 1.5)
    assert found.per_million_tokens.low == pytest.approx(hours * (3 * 80 + 1) / 1e6)
    assert found.not_counted == ("interruptions and checkpoints", "host power (in kWh alone)")
    own = estimate(load(inputs), "own")
    assert own.components["compute"].low == pytest.approx(hours * 2 * (60_000 + 10_000) / (8766 * 0.5))
    assert own.components["energy"].low == pytest.approx(hours * 2 * 8.2 * 1.5 * 0.2)
    assert estimate(load(inputs), "own", include_energy=False).components["energy"].low == 0


def test_at_its_break_even_price_an_offer_costs_as_much_as_the_other() -> None:
    exact = load(EXAMPLE).model_dump(mode="json")
    for offer in exact["offers"].values():
        for value in offer.values():
            if isinstance(value, dict) and "value" in value:
                value["value"] = value["value"][0]
    for section in ("energy", "storage", "checkpoints"):
        for value in exact[section].values():
            if isinstance(value, dict):
                value["value"] = value["value"][0]
    found = CostAnalyzer(exact).compare_training_cost()
    for point in found.break_even("gaudi3", "h100"):
        exact["offers"]["gaudi3"] |= {"node_price_per_hour": given(point.cheaper_below), "mfu": given(point.mfu)}
        again = CostAnalyzer(exact).compare_training_cost(platforms=["gaudi3", "h100"])
        if point.mfu == 0.4:
            assert again.estimates[0].total.low == pytest.approx(again.estimates[1].total.low, rel=1e-6)
    below = [point.cheaper_below for point in found.break_even("gaudi3", "h100")]
    assert below == sorted(below)


def test_the_break_even_curve_needs_no_price_and_no_throughput_of_the_platform_in_question() -> None:
    found = CostAnalyzer({"offers": {"h100": rented()}}).compare_training_cost(platforms=["h100"])
    (at_40,) = [point for point in found.break_even("gaudi3", "h100") if point.mfu == 0.4]
    assert at_40.cheaper_below == pytest.approx(80 * 1835 / 989.4) == at_40.more_expensive_above


# What is missing or impossible.


@pytest.mark.parametrize(
    ("offer", "message"),
    [
        (
            {"mfu": given(0.4)},
            "No node_price_per_hour of gaudi3 is given and none is built in: add offers.gaudi3.node_price_per_hour to "
            "the inputs, with its source and date, as node_price_per_hour: {value: 12.5, source: where it is from, "
            "date: 2026-11-23}.",
        ),
        (
            {"node_price_per_hour": given(80)},
            "No mfu of gaudi3 is given and none is built in: add offers.gaudi3.mfu to the inputs, with its source and "
            "date, as mfu: {value: 12.5, source: where it is from, date: 2026-11-23}.",
        ),
        (
            rented(node_price_per_hour={"value": 80}),
            "In the inputs, offers.gaudi3.node_price_per_hour.source is missing: a value is given with its source and "
            "date, as {value: 12.5, source: where it is from, date: 2026-11-23}.",
        ),
        (
            rented(node_price_per_hour=80),
            "In the inputs, offers.gaudi3.node_price_per_hour is 80: write it as {value: 12.5, source: where it is "
            "from, date: 2026-11-23}.",
        ),
        (
            rented(node_price_per_hour=given(0)),
            "In the inputs, offers.gaudi3: node_price_per_hour is [0.0, 0.0], but it has to be above 0.",
        ),
        (
            rented(mfu=given(1.2)),
            "In the inputs, offers.gaudi3: mfu is [1.2, 1.2], but a share above 0 and up to 1 is needed.",
        ),
        (
            rented(price=3),
            "In the inputs, the key offers.gaudi3.price is not known: docs/use/cost.md lists all keys.",
        ),
        (
            rented(interruptions_per_node_day=given(1)),
            "In the inputs, the whole: offers.gaudi3.interruptions_per_node_day needs the section checkpoints, with "
            "the seconds that a checkpoint and a restart take.",
        ),
    ],
)
def test_what_is_missing_is_an_error_that_says_how_to_give_it(offer: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        CostAnalyzer({"offers": {"gaudi3": offer}}).compare_training_cost(platforms=["gaudi3"])
    assert str(raised.value) == message


def test_no_price_and_no_mfu_is_built_in_and_a_limit_of_power_has_a_source_and_a_date() -> None:
    watts = {name: each.device_watts for name, each in PLATFORMS.items() if each.device_watts is not None}
    assert {name: value.high for name, value in watts.items()} == {"gaudi3": 900, "gaudi2": 600}
    assert all("The Register" in value.source for value in watts.values())
    for name in PLATFORMS:
        for given_too, missing in (({}, "mfu"), ({"mfu": given(0.4)}, "node_price_per_hour")):
            with pytest.raises(ConfigError) as raised:
                CostAnalyzer({"offers": {name: given_too}}).compare_training_cost(platforms=[name])
            assert str(raised.value) == (
                f"No {missing} of {name} is given and none is built in: add offers.{name}.{missing} to the inputs, "
                f"with its source and date, as {missing}: {{value: 12.5, source: where it is from, date: 2026-11-23}}."
            )


def test_power_that_is_not_known_is_asked_for_where_it_is_paid_for_and_left_out_elsewhere() -> None:
    (rent,) = CostAnalyzer({"offers": {"h100": rented()}}).compare_training_cost().estimates
    assert rent.energy_kwh is None and "kWh (no device_watts)" in rent.not_counted
    own = {
        "mfu": given(0.4),
        "node_purchase_price": given(300_000),
        "amortisation_years": given(5),
        "utilisation": given(0.5),
        "node_upkeep_per_year": given(10_000),
        "host_watts": given(1000),
    }
    inputs = {"offers": {"h100": own}, "energy": {"price_per_kwh": given(0.2), "pue": given(1.5)}}
    with pytest.raises(ConfigError, match=r"^No device_watts of h100 is given and none is built in: add offers\.h100"):
        CostAnalyzer(inputs).compare_training_cost()
    readings = {"values": [640, 0, 660], "source": "a log", "date": "2026-11-23"}
    own["device_watts_readings"] = readings
    (owned,) = CostAnalyzer(inputs).compare_training_cost().estimates
    assert owned.energy_kwh is not None
    assert owned.energy_kwh.low == pytest.approx(owned.node_hours.low * (8 * 0.65 + 1) * 1.5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model_size": "big"}, "model_size is 'big': give a number of parameters, as 70B, or one of"),
        ({"dataset_tokens": "-1T"}, "dataset_tokens is '-1T': give a number above 0"),
        ({"platforms": ["tpu"]}, "The platform 'tpu' is not known: give one of gaudi3, gaudi2, h100, h200, a100"),
        ({"platforms": []}, "No platform is given: give platforms="),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        CostAnalyzer({"offers": {"h100": rented()}}).compare_training_cost(**arguments)
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize("value", [True, [False, 0.4]])
def test_true_and_false_are_no_values(value: object) -> None:
    readings = {"values": [640, True], "source": "a log", "date": "2026-11-23"}
    for more in ({"mfu": {**given(0.4), "value": value}}, {"device_watts_readings": readings}):
        with pytest.raises(ConfigError, match="numbers, not true or false"):
            CostAnalyzer({"offers": {"h100": {**rented(), **more}}})


def test_a_precision_without_a_confirmed_peak_needs_a_measured_speed() -> None:
    inputs = {"job": {"precision": "float8"}, "offers": {"h200": rented()}}
    with pytest.raises(ConfigError, match="No confirmed dense peak of h200 for float8 is known"):
        CostAnalyzer(inputs).compare_training_cost()


def test_a_measured_speed_needs_no_peak(tmp_path: Path) -> None:
    """It has no MFU then, in no form of the report."""
    offers = {"gaudi2": rented(precision="float8", tokens_per_second_per_device=given(100))}
    offers["gaudi3"] = rented(precision="float32", tokens_per_second_per_device=given(50))
    for offer in offers.values():
        del offer["mfu"]
    analyzer = CostAnalyzer({"offers": {**offers, "h100": rented()}})
    slow, slower, other = analyzer.compare_training_cost(dataset_tokens="1B").estimates
    assert slow.mfu is None and slower.mfu is None and other.mfu is not None
    assert slow.total.low == pytest.approx(1e9 / 100 / 3600 / 8 * 80)
    assert slower.total.low == pytest.approx(2 * slow.total.low)
    assert "mfu" not in [line.split(",")[1] for line in _lines(analyzer, tmp_path / "a.csv") if "gaudi2" in line]
    for suffix in ("txt", "json", "html", "pdf"):
        analyzer.generate_report(tmp_path / f"a.{suffix}")


def _lines(analyzer: CostAnalyzer, path: Path) -> list[str]:
    return analyzer.generate_report(path).read_text().splitlines()


def test_what_another_precision_costs() -> None:
    """Of equal MFU, float8 on an H100 takes half of the time; on a Gaudi 3 as long, as its peak is the same."""
    offers = {"h100-fp8": rented(platform="h100", precision="float8"), "h100": rented(), "gaudi3": rented()}
    offers["gaudi3-fp8"] = rented(platform="gaudi3", precision="float8")
    found = {each.offer: each.total.low for each in CostAnalyzer({"offers": offers}).compare_training_cost().estimates}
    assert found["h100-fp8"] == pytest.approx(found["h100"] * 989.4 / 1978.9)
    assert found["gaudi3-fp8"] == found["gaudi3"]


def test_impossible_readings_of_power_do_not_count() -> None:
    inputs = {
        "offers": {
            "gaudi3": rented(
                device_watts_readings={"values": [600, 0, 1900, 640, -5, 620], "source": "a log", "date": "2026-11-23"}
            )
        }
    }
    power = load(inputs).device_watts("gaudi3")
    assert power is not None
    assert power.low == power.high == 620
    assert power.source == "a log: mean of 3 readings, 3 impossible ones left out"
    with pytest.raises(ConfigError, match=r"^3 of 4 readings of power are impossible for a card of 900 W"):
        screen([0, float("nan"), 5000, 500], 900)


def test_a_job_that_never_ends_is_said() -> None:
    offer = rented(interruptions_per_node_day=given(50))
    inputs = {"offers": {"h100": offer}, "checkpoints": {"stall_seconds": given(60), "restart_seconds": given(3600)}}
    with pytest.raises(ConfigError, match="the job never ends; give fewer devices"):
        CostAnalyzer(inputs).compare_training_cost()


UNITS = ("_per_hour", "_per_year", "_per_device", "_per_node_day", "_per_kwh", "_month", "_price", "_years", "_watts")
UNITS += ("_seconds", "_minutes", "gib")
NO_UNIT = {"mfu", "utilisation", "pue"}


@pytest.mark.parametrize("section", [Offer, Energy, Storage, Checkpoints])
def test_the_unit_is_in_every_name(section: type[BaseModel]) -> None:
    for name, field in section.model_fields.items():
        if field.annotation in (Given, Given | None):
            assert name in NO_UNIT or name.endswith(UNITS), name


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path / "missing.yml")
    (tmp_path / "broken.yml").write_text("offers: {")
    with pytest.raises(ConfigError, match="not valid YAML"):
        load(tmp_path / "broken.yml")
    assert isinstance(load(EXAMPLE), Inputs)
