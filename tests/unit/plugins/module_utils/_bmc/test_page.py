"""The metrics of management controllers: as the contract has them, and safe whatever a controller says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.gaudi3.scale.plugins.filter.bmc_metrics import bmc_metrics
from ansible_collections.gaudi3.scale.plugins.module_utils._bmc.cards import Reader
from ansible_collections.gaudi3.scale.plugins.module_utils._bmc.page import METRICS, page
from tests.stand_in_bmc import tree

from .test_cards import Told

ROOT = Path(__file__).resolve().parents[5]
SERIES = re.compile(r'(?P<name>\w+)\{(?P<labels>(?:\w+="(?:[^"\\\n]|\\[\\"n])*",?)*)\} (?P<value>\S+)')


def facts(folder: Path, *broken: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = Reader(Told(tree(folder, *broken)), lambda: 1.5).machine().as_facts()  # type: ignore[arg-type]
    return found


def series(text: str) -> list[tuple[str, str, str]]:
    found = [SERIES.fullmatch(line) for line in text.splitlines() if not line.startswith("#")]
    return [(each["name"], each["labels"], each["value"]) for each in found if each]


def test_every_metric_is_in_the_contract_with_its_labels(tmp_path: Path) -> None:
    contract = yaml.safe_load((ROOT / "docs/reference/metrics.yml").read_text())["metrics"]
    promised = {each["name"]: each for each in contract if each["name"].startswith("gaudi_bmc_")}
    made = page({"gaudi-1": facts(tmp_path, {"kind": "cpu-timeout", "card": 0})})
    shown = {name: sorted(re.findall(r'(\w+)="', labels)) for name, labels, _value in series(made)}
    assert shown == {name: sorted(each["labels"]) for name, each in promised.items()}
    kinds = {name: "gauge" if each["type"] == "info" else each["type"] for name, each in promised.items()}
    assert kinds == {name: kind for name, (kind, _help) in METRICS.items()}
    assert {name: each["help"].rstrip(".") for name, each in promised.items()} == {
        name: text.rstrip(".") for name, (_kind, text) in METRICS.items()
    }


def test_many_machines_are_one_page_with_one_help_each(tmp_path: Path) -> None:
    one = facts(tmp_path)
    made = page({"gaudi-2": one, "gaudi-1": one, "gaudi-3": {}, "gaudi-4": None})
    assert len(re.findall(r"^# HELP gaudi_bmc_complete ", made, re.MULTILINE)) == 1
    assert re.findall(r'^gaudi_bmc_complete\{node="(.*)"\} 1$', made, re.MULTILINE) == ["gaudi-1", "gaudi-2"]
    assert len(series(made)) == len([line for line in made.splitlines() if not line.startswith("#")]) > 2 * 8 * 10
    # Series of one metric stand together, as the format wants it.
    names = [name for name, _labels, _value in series(made)]
    assert names == sorted(names, key=list(METRICS).index)
    assert "gaudi-3" not in made and page({}) == ""


def test_a_fault_is_a_series(tmp_path: Path) -> None:
    made = page({"gaudi-1": facts(tmp_path, {"kind": "cpu-timeout", "card": 0}, {"kind": "ecc-corrected", "card": 1})})
    (alert,) = [labels for name, labels, _value in series(made) if name == "gaudi_bmc_card_alert"]
    assert 'field="Watchdog.Heartbeat",name="HEARTBEAT",node="gaudi-1"' in alert and 'severity="error"' in alert
    counted = [
        (labels, value) for name, labels, value in series(made) if name.endswith("errors_total") and value != "0"
    ]
    assert [value for _labels, value in counted] == ["1"] and 'kind="single",memory="hbm"' in counted[0][0]


def test_an_alert_without_a_meaning_is_counted_and_not_raised(tmp_path: Path) -> None:
    found = facts(tmp_path)
    found["cards"][2]["alerts"] = [
        {"state": "unclear", "field": "D2D.D2DErrorState", "name": "x", "severity": "warning"}
    ]
    made = page({"gaudi-1": found})
    assert "gaudi_bmc_card_alert{" not in made
    assert 'gaudi_bmc_card_alerts_unclear{node="gaudi-1",oam="2"} 1\n' in made


def test_a_reading_without_a_unit_is_no_metric(tmp_path: Path) -> None:
    found = facts(tmp_path)
    for card in found["cards"]:
        card["temperatures"]["soc"]["unit"] = None
    assert 'place="soc"' not in page({"gaudi-1": found}) and 'place="hbm"' in page({"gaudi-1": found})


def test_a_machine_that_is_off_is_0(tmp_path: Path) -> None:
    found = facts(tmp_path) | {"power": "Off", "complete": False}
    made = page({"gaudi-1": found})
    assert 'gaudi_bmc_power_on{node="gaudi-1"} 0\n' in made and 'gaudi_bmc_complete{node="gaudi-1"} 0\n' in made
    assert "gaudi_bmc_power_on" not in page({"gaudi-1": found | {"power": None}})


@pytest.mark.parametrize("odd", ['a"} 1\nup{x="', "back\\slash", "\x1b[2J", "new\nline"])
def test_a_text_stays_in_its_label(odd: str, tmp_path: Path) -> None:
    found = facts(tmp_path)
    found["cards"][0].update(
        serial=odd, firmware={"management": odd}, temperatures={odd: {"unit": "Cel", "reading": 1}}
    )
    made = page({odd: found})
    assert len(series(made)) == len([line for line in made.splitlines() if not line.startswith("#")])
    assert not re.search(r"^up\{", made, re.MULTILINE) and "\x1b" not in made


@pytest.mark.parametrize(
    "odd",
    [5, [], "text", {"read_at": "now"}, {"read_at": 1, "cards": 5}, {"read_at": 1, "cards": [None, {"oam": "x"}]}],
)
def test_odd_facts_make_no_odd_page(odd: object) -> None:
    assert {name for name, _labels, _value in series(page({"a": odd}))} <= {
        "gaudi_bmc_read_timestamp_seconds", "gaudi_bmc_complete",
    }  # fmt: skip


def test_the_filter_takes_machines_by_their_names(tmp_path: Path) -> None:
    found = facts(tmp_path)
    answers = {"gaudi-1": {"changed": False, "ansible_facts": {"gaudi_bmc": found}}, "gaudi-2": {"msg": "no answer"}}
    assert bmc_metrics(answers) == page({"gaudi-1": found})
    with pytest.raises(Exception, match="by the names of machines"):
        bmc_metrics([found])
