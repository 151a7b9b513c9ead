"""The pictures of pages in the documents are those that `make screenshots` takes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gaudi3_simulator.node import faults
from tests.monitoring.screenshots import PICTURES

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/start/demo.md").read_text()


def test_each_picture_of_a_page_is_taken_by_the_command_and_shown() -> None:
    there = {path.name for path in (ROOT / "docs" / "operate").glob("prometheus-*.png")}
    assert there == set(PICTURES)
    assert there == set(re.findall(r"\]\(\.\./operate/(prometheus-[^)]+)\)", PAGE))


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_has_faults_and_alerts_that_there_are_and_its_text_names_them(name: str) -> None:
    rules = (ROOT / "roles/prometheus/templates/gaudi3.rules.yml.j2").read_text()
    for _node, kind, *options in PICTURES[name].faults:
        faults.make(kind, int(options[1]) if options else None, None, 8)
    words = PAGE.partition(f"](../operate/{name})")[0].rpartition("![")[2]
    for alert in PICTURES[name].alerts:
        assert f"- alert: {alert}\n" in rules and alert in words
